// One product of matrices of an emulated device, as the emulated cuBLAS and cuBLASLt both do it.
#pragma once

#include "heed/core/cuda/emulator/cublas_v2.h"

namespace heed::emulated {

/// What a call says, by columns: c [m, n] = alpha a b + beta c.
struct MatrixProduct {
  bool turned_a, turned_b;
  int64_t m, n, k;
  double alpha, beta;
  cudaDataType_t factors, result;
  int64_t lda, ldb, ldc;
  cublasComputeType_t compute;

  /// Whether cuBLAS takes such a call.
  bool right() const;
};

void multiply(const MatrixProduct& call, const void* a, const void* b, void* c);

}  // namespace heed::emulated
