// Products of matrices, batched and strided.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/matmul_precision.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// c = alpha a b + beta c, with a [batch..., M, K], b [batch..., K, N], c [batch..., M, N]; batch axes equal
/// (expanded views repeat by stride 0). In a and b one of the last two strides is 1, in c the last: a
/// transposed matrix or one head of [B, T, H, d] is a view, not a copy. Cut into tiles fixed by the shape;
/// f32 and f64. In bf16, factors of f32 are rounded; products with an extent below 32 stay exact, since
/// rounding them would cost what it saves; on a device, a and b may already be bf16 where none is below 32.
/// In tf32, a device reads factors of f32 so.
struct Gemm {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                  Rounding rounding);
  static void cuda(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                   Rounding rounding);
};

/// True when Gemm takes the last two axes of x as they lie (also where an extent is 1).
bool gemm_ready(const Tensor& x);

}  // namespace heed::kernel
