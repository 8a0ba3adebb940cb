// Finds the first NaN or infinity of a step: in which parameter, batch, result or gradient. What the run then
// does, skip or stop, is in non_finite_guard.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/train/loop/gradient_accumulation.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The dotted names of the parts of a module, for Trace; what runs outside of them is called the loss.
Trace::Name names_in(Module& module);

/// What steps change besides parameters.
std::vector<Named> buffers(Module& module);

/// The first value in a buffer that is not finite, in words, or nothing. Waits for the device.
std::string find_bad_buffer(Module& module);

/// The first value that is not finite in a step, as the words "first bad value in MODULE (inf): ...", or
/// nothing. Looks at the parameters, at what the batches hold (`names` are those of their tensors), at every
/// result and gradient while `again` computes the step once more, and at the gradients that reached the
/// parameters.
std::string find_bad_value(Module& module, StepBatches& batches, const std::vector<std::string>& names,
                           const std::function<void()>& again);

/// What is said where such a search finds nothing.
inline constexpr const char* nothing_bad =
    "every value was finite when the step was computed again; suspect the machine's memory";

}  // namespace heed
