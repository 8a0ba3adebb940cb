// Matrix products, batched and strided.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/matmul_precision.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// c = alpha a b + beta c, with a [batch..., M, K], b [batch..., K, N], c [batch..., M, N]; batch axes equal
/// (expanded views repeat by stride 0). In a and b one of the last two strides is 1, in c the last: a
/// transposed matrix or one head of [B, T, H, d] is a view, not a copy. Computes in f32 or f64, in tiles
/// fixed by the shape. With Rounding::bf16, operands in f32 are rounded to bf16 unless an extent is below 32,
/// where rounding would cost what it saves. With Rounding::tf32, a device rounds operands in f32 to tf32. Each
/// of a, b and c may be bf16 instead of f32: sums are f32, and c, which then needs beta = 0, is rounded once.
struct Gemm {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                  Rounding rounding);
  static void cuda(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                   Rounding rounding);
};

/// True when Gemm accepts the strides of the last two axes of x.
bool gemm_ready(const Tensor& x);

}  // namespace heed::kernel
