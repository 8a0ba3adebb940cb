// cuBLASLt: products that end with more than their sums.
#pragma once

#include "heed/core/cuda/runtime/blas.h"

namespace heed::cuda {

/// What a product does besides, by columns as cuBLAS counts. `gelu` is GELU by tanh.
enum class Finish : uint8_t {
  bias,            ///< adds bias[i] to row i
  gelu,            ///< writes c to `before`, and becomes its GELU
  gelu_bias,       ///< adds bias[i] to row i, then the same
  gelu_back,       ///< is multiplied by the slope of GELU at `before`
  gelu_back_sums,  ///< the same, and writes the sum of each row to bias[i]
  sums_of_b        ///< writes the sum of column j of b to bias[j]
};

/// One product of f32 sums into f32 or bf16, and what it does besides.
struct FinishedProduct {
  BlasProduct product;  ///< its batch is 1
  Finish finish;
  void* bias = nullptr;    ///< of the type of c
  void* before = nullptr;  ///< of the type of c, as c lies
};

/// Does it all in one kernel. False where cuBLASLt is not there or knows none: then nothing was done.
bool multiply(const FinishedProduct& what);

}  // namespace heed::cuda
