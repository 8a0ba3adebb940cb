// Matrix products of an emulated device, for its cuBLAS and cuBLASLt.
#pragma once

#include "heed/core/cuda/emulator/cublas_v2.h"

namespace heed::emulated {

/// Arguments of a product of column-major matrices: c [m, n] = alpha a [m, k] b [k, n] + beta c.
struct MatrixProduct {
  bool transposed_a, transposed_b;  ///< a is stored as [k, m], b as [n, k]
  int64_t m, n, k;
  double alpha, beta;
  cudaDataType_t factors, result;  ///< types of a and b, and of c
  int64_t lda, ldb, ldc;           ///< elements from one stored column to the next
  cublasComputeType_t compute;

  /// Whether cuBLAS accepts these arguments.
  bool is_valid() const;
};

/// Computes the product, with factors rounded as tensor cores round them.
void multiply(const MatrixProduct& call, const void* a, const void* b, void* c);

}  // namespace heed::emulated
