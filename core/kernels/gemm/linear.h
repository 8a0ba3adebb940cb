// Linear layers: a matrix product fused with bias and GELU, and its gradients.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/matmul_precision.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y [N, out] = x [N, in] weight^T + bias, with weight [out, in] and bias [out], or empty. Where
/// `before_gelu` [N, out] is not empty, it receives x weight^T + bias, and y is its GELU by tanh. Rounding is
/// that of Gemm; x and weight have strides that Gemm accepts, all other tensors are contiguous. x, weight,
/// dy, and both `before_gelu` and y may be bf16 instead of f32, as in Gemm; gradients of biases are f32 then,
/// and so are biases, which a device takes in bf16, too, where y is.
struct Linear {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before_gelu,
                  const Tensor& y, Rounding rounding);
  static void cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before_gelu,
                   const Tensor& y, Rounding rounding);
};

/// dx [N, in] = dy [N, out] weight. Where `before_gelu` [N, in] is not empty, x was GELU(before_gelu): dx
/// then is the gradient of `before_gelu`, and dbias [in] (or empty) its sum over rows. Without `before_gelu`,
/// dbias is not written. dx may be bf16, as `before_gelu` is then.
struct LinearBack {
  template <Isa>
  static void cpu(const Tensor& dy, const Tensor& weight, const Tensor& before_gelu, const Tensor& dx,
                  const Tensor& dbias, Rounding rounding);
  static void cuda(const Tensor& dy, const Tensor& weight, const Tensor& before_gelu, const Tensor& dx,
                   const Tensor& dbias, Rounding rounding);
};

/// dweight [out, in] = dy^T x, and dbias [out] (or empty) = the sum over rows of dy, or of dy rounded to bf16
/// where the matrix product takes it so.
struct LinearWeightBack {
  template <Isa>
  static void cpu(const Tensor& dy, const Tensor& x, const Tensor& dweight, const Tensor& dbias,
                  Rounding rounding);
  static void cuda(const Tensor& dy, const Tensor& x, const Tensor& dweight, const Tensor& dbias,
                   Rounding rounding);
};

}  // namespace heed::kernel
