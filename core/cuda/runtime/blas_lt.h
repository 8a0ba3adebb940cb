// cuBLASLt: products with an epilogue (bias, GELU, and their gradients).
#pragma once

#include "heed/core/cuda/runtime/blas.h"

namespace heed::cuda {

/// The epilogue of a product c = a b, by columns as in cuBLAS. GELU is that by tanh.
enum class Finish : uint8_t {
  bias,            ///< c_ij += bias_i
  gelu,            ///< before = c, then c = gelu(c)
  gelu_bias,       ///< c_ij += bias_i, before = c, then c = gelu(c)
  gelu_back,       ///< c = c gelu'(before)
  gelu_back_sums,  ///< c = c gelu'(before), and bias_i = sum of row i of c
  sums_of_b        ///< bias_j = sum of column j of b
};

/// A product with f32 sums, into f32 or bf16, and its epilogue.
struct FinishedProduct {
  BlasProduct product;  ///< its batch is 1
  Finish finish;
  void* bias = nullptr;    ///< has the dtype of c
  void* before = nullptr;  ///< has the dtype and strides of c
};

/// Computes product and epilogue in one kernel. Returns false, and computes nothing, where cuBLASLt is
/// missing or has no such kernel.
bool multiply(const FinishedProduct& what);

}  // namespace heed::cuda
