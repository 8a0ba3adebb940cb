// Finds the first NaN or infinity of a step: in which parameter, batch, result or gradient.
// non_finite_policy.h decides whether the run skips the step or stops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/train/loop/step_batches.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The dotted names of the submodules of a module, for Trace; ops outside of them are named "the loss".
Trace::Name names_in(Module& module);

/// The tensors of a module that are not trained, such as running means.
std::vector<Named> buffers(Module& module);

/// Describes the first value in a buffer that is not finite; empty where there is none. Waits for the device.
std::string find_bad_buffer(Module& module);

/// Describes the first value of a step that is not finite, "first bad value in MODULE (inf): ..."; empty
/// where there is none. Examines the parameters, the tensors of the batches (whose names are `names`), every
/// result and gradient while recompute() computes the step again, and the gradients of the parameters.
std::string find_bad_value(Module& module, StepBatches& batches, const std::vector<std::string>& names,
                           const std::function<void()>& recompute);

/// The description where find_bad_value() finds nothing.
inline constexpr const char* no_bad_value =
    "every value was finite when the step was computed again; suspect the machine's memory";

}  // namespace heed
