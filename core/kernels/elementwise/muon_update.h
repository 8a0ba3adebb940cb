// The elementwise parts of Muon; its products are Gemm's.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// m = momentum m + (1 - momentum) g and direction = momentum m + (1 - momentum) g for every element, where g
/// is the clipped gradient: Nesterov's momentum (Jordan et al. 2024, kellerjordan.github.io/posts/muon). All
/// are f32 or f64 [n], contiguous; state is that of AdamW, with the momentum in place of beta1. clip_value
/// and clip are those of AdamWConstants. Writes mean and direction; writes nothing where the sum of squares
/// is not finite.
struct MuonDirection {
  template <Isa>
  static void cpu(const Tensor& gradient, const Tensor& mean, const Tensor& state, double clip_value,
                  double clip, const Tensor& direction);
  static void cuda(const Tensor& gradient, const Tensor& mean, const Tensor& state, double clip_value,
                   double clip, const Tensor& direction);
};

/// x[i] /= max(sqrt(squares[i]), smallest) for each row i of x [count, n], f32 or f64, contiguous; squares is
/// f64 [count], the sum of squares of each row.
struct DivideByNorms {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& squares, double smallest);
  static void cuda(const Tensor& x, const Tensor& squares, double smallest);
};

/// values -= learning_rate (decay values + scale direction) for every element: f32 or f64 [n], contiguous.
/// state is that of AdamW; writes nothing where its sum of squares is not finite.
struct MuonStep {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& direction, const Tensor& state, double decay,
                  double scale);
  static void cuda(const Tensor& values, const Tensor& direction, const Tensor& state, double decay,
                   double scale);
};

}  // namespace heed::kernel
