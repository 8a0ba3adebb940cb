// Matrix products with an epilogue (bias, GELU, and their gradients) by cuBLASLt.
#pragma once

#include "heed/core/cuda/runtime/blas.h"

namespace heed::cuda {

/// What the kernel does after a column-major product c = a b. GELU is its approximation by tanh; products of
/// matrices with gelu' are elementwise.
enum class Epilogue : uint8_t {
  bias,                ///< c_ij += bias_i
  gelu,                ///< before_gelu = c, then c = gelu(c)
  gelu_bias,           ///< c_ij += bias_i, before_gelu = c, then c = gelu(c)
  gelu_back,           ///< c = c gelu'(before_gelu)
  gelu_back_row_sums,  ///< c = c gelu'(before_gelu), and bias_i = sum over j of c_ij
  column_sums_of_b     ///< bias_j = sum over i of b_ij
};

/// A product with f32 sums, into f32 or bf16, and its epilogue.
struct ProductWithEpilogue {
  BlasProduct product;  ///< its batch is 1
  Epilogue epilogue;
  void* bias = nullptr;         ///< has the dtype of c
  void* before_gelu = nullptr;  ///< has the dtype and strides of c
};

/// Computes product and epilogue in one kernel. Returns false, and computes nothing, where cuBLASLt is
/// missing or has no such kernel.
bool multiply(const ProductWithEpilogue& call);

}  // namespace heed::cuda
