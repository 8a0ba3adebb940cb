// One step of AdamW or SGD over the flat arena of all parameters.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Constants of Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).
struct AdamWConstants {
  double beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;       ///< weight decay
  bool decoupled = true;  ///< AdamW: value -= rate decay value; else Adam: adds decay value to the gradient
  double clip_value = 0;  ///< each element of the gradient is cut to +-clip_value first; 0: not cut
  double clip = 0;        ///< largest norm of the whole gradient; 0: not clipped
};

/// Writes the learning rate, the number of steps before this one and the momentum of a step into `state`, f64
/// [4]: see AdamW. Its sum of squares stays.
struct BeginOptimizerStep {
  template <Isa>
  static void cpu(const Tensor& state, double rate, int64_t steps_done, double momentum);
  static void cuda(const Tensor& state, double rate, int64_t steps_done, double momentum);
};

/// AdamWUpdate of every element of values, gradient and the moments first and second: f32 or f64 [n],
/// contiguous. state is f64 [4] on the device: learning rate, number of steps before this one, sum of squares
/// of the whole gradient, and beta1. Writes values, first and second; writes nothing where that sum is not
/// finite.
struct AdamW {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                  const Tensor& state, const AdamWConstants& constants);
  static void cuda(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                   const Tensor& state, const AdamWConstants& constants);
};

/// SgdUpdate of every element of values, gradient and velocity: f32 or f64 [n], contiguous. state is that of
/// AdamW, with the momentum as its last number. Writes values and velocity; writes nothing where the sum of
/// squares is not finite. clip_value and clip are those of AdamWConstants.
struct Sgd {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
                  double decay, double clip_value, double clip);
  static void cuda(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
                   double decay, double clip_value, double clip);
};

}  // namespace heed::kernel
