// Gradient check: compares the tape's gradients with central differences in f64.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// Settings of a gradient check.
struct GradcheckOptions {
  double step = 1e-6;       ///< step of a central difference, times |element| where that is above 1
  double tolerance = 1e-6;  ///< largest relative error that passes
  int64_t samples = 0;      ///< number of elements checked of each tensor, drawn without repetition; 0: all
  uint64_t seed = 1;        ///< seed of the combination of f's results and of the drawn elements
};

/// Result of a gradient check. Errors are relative to the larger of both derivatives, but to no less than a
/// hundredth of the tensor's largest derivative and 1e-3: below that, rounding of the differences dominates.
struct GradcheckReport {
  bool passed = true;    ///< the errors are within the tolerances and a second backward() gave the same bits
  bool repeats = true;   ///< a second backward() gave the same bits
  double relative = 0;   ///< the worst error
  double absolute = 0;   ///< the worst error as a difference
  int64_t input = -1;    ///< index of the tensor with the worst error
  int64_t element = -1;  ///< index of the element in that tensor, in row-major order
  double numeric = 0;    ///< derivative by central differences
  double taped = 0;      ///< derivative by the tape
  int64_t checked = 0;   ///< number of elements compared
  Shape shape;           ///< shape of the tensor with the worst error
};

/// The report as one line: passed or not, the worst element and its derivatives.
std::string to_string(const GradcheckReport& report);

/// Checks every element of every float input of f against central differences of a fixed random combination
/// of f's result. Float inputs are made f64 leaves; others (ids, masks) are handed over as they are. f gives
/// the same result at each call: it restores a random source that it draws from. Fails where it does not, and
/// where the result is not f64.
GradcheckReport gradcheck(const std::function<Tensor(std::span<const Tensor>)>& f, std::vector<Tensor> inputs,
                          const GradcheckOptions& options = {});
/// gradcheck() of existing f64 leaves, such as parameters: their elements are changed in place and restored.
/// Clears their gradients before and after.
GradcheckReport gradcheck(const std::function<Tensor()>& f, std::span<const Tensor> leaves,
                          const GradcheckOptions& options = {});

/// Throws the report as an Error (Fault::numeric) unless the check passes.
void require_gradients(const std::function<Tensor(std::span<const Tensor>)>& f, std::vector<Tensor> inputs,
                       const GradcheckOptions& options = {});
/// require_gradients() of existing leaves.
void require_gradients(const std::function<Tensor()>& f, std::span<const Tensor> leaves,
                       const GradcheckOptions& options = {});

}  // namespace heed
