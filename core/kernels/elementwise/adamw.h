// One optimizer step over a flat arena.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Constants of Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).
struct AdamWConstants {
  double beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;  ///< weight decay
  bool decoupled =
      true;         ///< AdamW: value -= rate decay value; else Adam: decay value is added to the gradient
  double clip = 0;  ///< largest norm of the whole gradient; 0: not clipped
};

/// values, gradient, first, second: f32 or f64 [n], contiguous. state is f64 [4] on the device: learning
/// rate, steps done before this one, the sum of squares of the whole gradient, and beta1. Writes values,
/// first and second; writes nothing where that sum is not finite.
struct AdamW {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                  const Tensor& state, const AdamWConstants& constants);
  static void cuda(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                   const Tensor& state, const AdamWConstants& constants);
};

/// SGD: velocity = momentum velocity + g + decay value; value -= rate velocity. state is that of AdamW with
/// the momentum as its last number. Writes nothing where the sum of squares is not finite.
struct Sgd {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
                  double decay, double clip);
  static void cuda(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
                   double decay, double clip);
};

}  // namespace heed::kernel
