// Matrix products by OpenBLAS. Any build of the library serves: pthread, OpenMP or serial.
#pragma once

#include <cstdint>

namespace heed::blas {

/// A factor of a matrix product: stored row by row, or column by column where it is transposed.
template <class T>
struct Factor {
  const T* data;    ///< the first element
  int64_t ld;       ///< elements from row to row, or from column to column where transposed
  bool transposed;  ///< whether the matrix is stored column by column
};

/// c = alpha a b + beta c, computed by the calling thread alone: a is m x k, b k x n, c m x n with rows `ldc`
/// apart. The bits do not depend on the number of threads.
void gemm(int64_t m, int64_t n, int64_t k, float alpha, Factor<float> a, Factor<float> b, float beta,
          float* c, int64_t ldc);
/// gemm() in double precision.
void gemm(int64_t m, int64_t n, int64_t k, double alpha, Factor<double> a, Factor<double> b, double beta,
          double* c, int64_t ldc);

/// The build of OpenBLAS that was loaded: "pthread", "openmp" or "serial".
const char* build();

}  // namespace heed::blas
