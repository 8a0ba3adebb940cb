// A matrix product on a device in the column-major terms of cuBLAS.
#pragma once

#include "heed/core/cuda/runtime/blas.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// x as a factor of the type `dtype`, f32 or bf16; rounded to bf16 it has the strides of x where gaps between
/// its elements are small.
Tensor factor_as(DType dtype, const Tensor& x);

inline cudaDataType_t blas_type(DType dtype) {
  return dtype == DType::f64 ? CUDA_R_64F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// c = alpha a b + beta c for the first matrices of a batch. In column-major order this is c' = b' a', so
/// that row-major matrices need no transposition.
inline cuda::BlasProduct by_columns(const Tensor& a, const Tensor& b, const Tensor& c, double alpha,
                                    double beta, Rounding rounding) {
  const int64_t m = c.extent(-2), n = c.extent(-1);
  const Layout la = layout(a), lb = layout(b);
  return {.m = n,
          .n = m,
          .k = a.extent(-1),
          .batch = 1,
          .a = {b.raw(), lb.step, lb.transposed, 0},
          .b = {a.raw(), la.step, la.transposed, 0},
          .c = c.raw(),
          .ldc = m == 1 ? n : c.strides()[-2],
          .c_batch_stride = 0,
          .alpha = alpha,
          .beta = beta,
          .factors = blas_type(a.dtype()),
          .result = blas_type(c.dtype()),
          .exactness = rounding == Rounding::tf32 ? cuda::Exactness::tf32 : cuda::Exactness::f32};
}

/// Adds a product to the operation count and the ProductLog. p is column-major: its b is our a.
inline void count_product(const cuda::BlasProduct& p) {
  const bool tf32 = p.factors == CUDA_R_32F && p.exactness == cuda::Exactness::tf32;
  Count::add(2 * p.m * p.n * p.k * p.batch);
  ProductLog::note({.batch = p.batch,
                    .m = p.n,
                    .n = p.m,
                    .k = p.k,
                    .a_transposed = p.b.transposed,
                    .b_transposed = p.a.transposed,
                    .accumulates = p.beta != 0,
                    .rounding = p.factors == CUDA_R_16BF ? Rounding::bf16
                                : tf32                   ? Rounding::tf32
                                                         : Rounding::none});
}

}  // namespace heed::kernel
