// Matrix products of an emulated device, for its cuBLAS and cuBLASLt.
#pragma once

#include "heed/core/cuda/emulator/cublas_v2.h"

namespace heed::emulated {

/// The arguments of a product by columns: c [m, n] = alpha a b + beta c.
struct MatrixProduct {
  bool transposed_a, transposed_b;
  int64_t m, n, k;
  double alpha, beta;
  cudaDataType_t factors, result;
  int64_t lda, ldb, ldc;
  cublasComputeType_t compute;

  /// Whether cuBLAS accepts these arguments.
  bool is_valid() const;
};

/// Computes the product.
void multiply(const MatrixProduct& call, const void* a, const void* b, void* c);

}  // namespace heed::emulated
