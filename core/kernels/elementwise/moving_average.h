// The exponential moving average of weights.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// average = decay average + (1 - decay) values, for f32 or f64 [n], contiguous; the first step copies
/// values. `state` is the optimizer's (f64 [5]): steps done before this one is its second number, and where
/// its third, the sum of squares of the gradient, is not finite, nothing is written.
struct MovingAverage {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& state, double decay, const Tensor& average);
  static void cuda(const Tensor& values, const Tensor& state, double decay, const Tensor& average);
};

}  // namespace heed::kernel
