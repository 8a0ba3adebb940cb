// Products by OpenBLAS, whichever build of it is found when the program starts: pthread, OpenMP or serial.
#pragma once

#include <cstdint>

namespace heed::blas {

/// A matrix in rows that are `step` apart, or in columns where it is transposed.
template <class T>
struct Factor {
  const T* at;      ///< first element
  int64_t step;     ///< elements from row to row, or from column to column where transposed
  bool transposed;  ///< the matrix is stored column by column
};

/// c = alpha a b + beta c in this thread: a is m x k, b k x n, c m x n with rows `ldc` apart. The bits do not
/// depend on other threads.
void gemm(int64_t m, int64_t n, int64_t k, float alpha, Factor<float> a, Factor<float> b, float beta,
          float* c, int64_t ldc);
/// gemm() in double precision.
void gemm(int64_t m, int64_t n, int64_t k, double alpha, Factor<double> a, Factor<double> b, double beta,
          double* c, int64_t ldc);

/// The kind of threads of the library that was found: "pthread", "openmp" or "serial".
const char* build();

}  // namespace heed::blas
