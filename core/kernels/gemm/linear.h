// Linear layers: a product fused with bias and GELU, and its gradients.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/matmul_precision.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y [N, out] = x [N, in] weight^T + bias, with weight [out, in] and bias [out], or empty. Where `before` [N,
/// out] is given, that goes there, and y is its GELU by tanh. Rounded as by Gemm; x and weight have the
/// strides that Gemm takes, all else is contiguous. In bf16, a device takes x, weight and dy as f32 or
/// rounded already, and where no extent is below 32 it writes `before` and y in bf16 where both are.
struct Linear {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before,
                  const Tensor& y, Rounding rounding);
  static void cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before,
                   const Tensor& y, Rounding rounding);
};

/// dx [N, in] = dy [N, out] weight. Where `before` [N, in] is given, x was the GELU of it: dx then is the
/// gradient of `before`, and dbias [in] (or empty) its sum over rows; `before` and dx may both be bf16 where
/// y of Linear may.
struct LinearBack {
  template <Isa>
  static void cpu(const Tensor& dy, const Tensor& weight, const Tensor& before, const Tensor& dx,
                  const Tensor& dbias, Rounding rounding);
  static void cuda(const Tensor& dy, const Tensor& weight, const Tensor& before, const Tensor& dx,
                   const Tensor& dbias, Rounding rounding);
};

/// dweight [out, in] = dy^T x, and dbias [out] (or empty) = the sum of dy over rows: of the rounded numbers,
/// where a device has no others.
struct LinearWeightBack {
  template <Isa>
  static void cpu(const Tensor& dy, const Tensor& x, const Tensor& dweight, const Tensor& dbias,
                  Rounding rounding);
  static void cuda(const Tensor& dy, const Tensor& x, const Tensor& dweight, const Tensor& dbias,
                   Rounding rounding);
};

}  // namespace heed::kernel
