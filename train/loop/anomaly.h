// Values that are not finite: where they come from, and planting them on purpose.
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "train/step_batches.h"
#include "train/task.h"

namespace heed {

/// One value planted at one step, so that tests see what a run does about it.
struct Plant {
  enum class Where { nowhere, parameter, input, gradient };
  Where where = Where::nowhere;
  std::string name;    ///< of the parameter; empty: the one in the middle of the list
  double value = NAN;  ///< or an infinity
  int64_t step = 0;    ///< counted from 1, as in the metrics
  bool on = false;     ///< at every later step too
  bool due(Where at, int64_t now) const { return where == at && (now == step || (on && now > step)); }
};

/// "parameter@3", "input@7", "gradient@12", with a name or value between:
/// "gradient:decoder.norm.gain:inf@12". A usage Error says what is legal; empty text plants nothing.
Plant parse_plant(const std::string& plan);

/// Writes the value into the middle of the parameter. Fails naming those there are when it names none.
void plant_parameter(const Plant& plant, Module& module);
/// Adds the value to the middle of the parameter's gradient, after backward().
void plant_gradient(const Plant& plant, Module& module);
/// Writes the value into the middle of the batch's first tensor of floats; a usage Error where it has none.
void plant_input(const Plant& plant, Batch& batch);

/// The dotted names of the parts of a module, for Trace; what runs outside of them is called the loss.
Trace::Name names_in(Module& module);

/// The first value that is not finite in a step, as the words "first bad value in MODULE (inf): ...". Looks
/// at the parameters, at what the batches hold (`parts` are the names of their tensors), at every result and
/// gradient while `again` computes the step once more, and at the gradients that reached the parameters.
std::string find_bad_value(Module& module, StepBatches& batches, const std::vector<std::string>& parts,
                           const std::function<void()>& again);

}  // namespace heed
