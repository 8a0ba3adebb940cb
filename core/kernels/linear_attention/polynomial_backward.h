// Gradients of PolynomialAttention from q, k, v, the output and the sums of weights; the forward pass saves
// nothing else.
#pragma once

#include "heed/core/kernels/linear_attention/polynomial_attention.h"

namespace heed::kernel {

/// Writes dx, the gradients of PolynomialAttention's inputs, from dout [B, H, Tq, dv]. A gradient is empty
/// where its input is.
struct PolynomialAttentionBack {
  template <Isa>
  static void cpu(const PolynomialInputs& x, const PolynomialParams& params, const Tensor& out,
                  const Tensor& sums, const Tensor& dout, const PolynomialInputs& dx);
  static void cuda(const PolynomialInputs& x, const PolynomialParams& params, const Tensor& out,
                   const Tensor& sums, const Tensor& dout, const PolynomialInputs& dx);
};

}  // namespace heed::kernel
