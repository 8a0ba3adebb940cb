// Mistakes of a training loop of one's own that its steps show: the trainer's model is checked by
// check_listed().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// Looks at the gradients before each Optimizer::step(). It costs a look at each parameter, not at its
/// numbers. It fails where a parameter was replaced after the optimizer was made. On standard error it warns
/// - at the first step, where no parameter has a gradient;
/// - at the second, of a leaf that got a gradient in both and belongs to no optimizer;
/// - at the tenth, of parameters that no gradient has reached so far;
/// - once, of dropout that was left out, since ForwardContext::rng was null.
class StepChecks {
 public:
  /// `leaves`: the parameters of the optimizer, with their gradients; `names`: their dotted names.
  void before_update(std::span<const Tensor> leaves, const std::vector<std::string>& names);

 private:
  int64_t steps_ = 0;  // calls so far
  bool has_warned_of_dropout_ = false;
  std::vector<bool> reached_;                // whether a gradient has reached each parameter
  std::vector<std::weak_ptr<Node>> strays_;  // leaves without an optimizer that the first step has found
};

}  // namespace heed
