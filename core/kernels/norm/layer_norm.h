// Layer normalisation in one pass, and RMS norm. Ba et al. 2016, arXiv 1607.06450; Zhang and Sennrich 2019,
// arXiv 1910.07467.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Divisor of a row: `variance` is sqrt(population variance + epsilon), the usual layer norm; `deviation` is
/// sample standard deviation + epsilon, as in the published opus_books recipe; `rms` subtracts no mean and
/// divides by sqrt(mean of squares + epsilon).
enum class NormScale { variance, deviation, rms };

/// Tensors of LayerNorm. Activations x and y may be bf16; all others then are f32.
struct LayerNormTensors {
  Tensor x;           ///< [N, d]
  Tensor gain, bias;  ///< [d]; the bias may be empty
  Tensor y;           ///< written: [N, d]
  Tensor mean, rstd;  ///< written: [N], for the gradient; the mean is 0 with NormScale::rms
};

/// y = gain (x - mean) rstd + bias over the last axis.
struct LayerNorm {
  template <Isa>
  static void cpu(const LayerNormTensors& t, double epsilon, NormScale scale);
  static void cuda(const LayerNormTensors& t, double epsilon, NormScale scale);
};

/// LayerNorm of a sum that it computes first: t.x [N, d] = x + dropout(branch), then t.y, t.mean and t.rstd.
/// x and branch have the shape of t.x, and with mask.p = 0 nothing is dropped.
struct AddDropoutNorm {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& branch, const DropoutMask& mask, const LayerNormTensors& t,
                  double epsilon, NormScale scale);
  static void cuda(const Tensor& x, const Tensor& branch, const DropoutMask& mask, const LayerNormTensors& t,
                   double epsilon, NormScale scale);
};

/// Tensors of LayerNormBack. Activations x, dy and dx may be bf16; all others then are f32.
struct LayerNormBackTensors {
  Tensor x, gain, mean, rstd;  ///< as LayerNorm read and wrote them
  Tensor dy;                   ///< [N, d]
  Tensor dx;                   ///< written: [N, d]
  Tensor dgain, dbias;         ///< written: [d]; dbias may be empty
  Tensor so_far = {};          ///< [N, d], added to dx: the gradient of x from elsewhere; empty: none
  Tensor dbranch =
      {};  ///< written: [N, d], dropout(dx), the gradient of the branch of AddDropoutNorm; or empty
  DropoutMask mask = {};  ///< that of AddDropoutNorm, for dbranch
};

/// Gradients of LayerNorm, and of the branch of AddDropoutNorm.
struct LayerNormBack {
  template <Isa>
  static void cpu(const LayerNormBackTensors& t, double epsilon, NormScale scale);
  static void cuda(const LayerNormBackTensors& t, double epsilon, NormScale scale);
};

}  // namespace heed::kernel
