// Calls of OpenBLAS, each with one thread. Calls of the serial build run one at a time.
#include "heed/core/parallel/blas.h"

#include <cblas.h>

#include <mutex>

namespace heed::blas {
namespace {

std::mutex mutex;

/// Limits OpenBLAS to one thread for calls of this thread, since the order of its sums depends on the number
/// of threads. The OpenMP build keeps the limit for each calling thread.
void use_one_thread() {
  thread_local bool is_set = false;
  if (is_set) return;
  const std::lock_guard lock(mutex);
  openblas_set_num_threads(1);
  is_set = true;
}

/// A lock for the serial build, which shares its working memory between calls; empty for the other builds.
std::unique_lock<std::mutex> lock_serial_build() {
  static const bool is_serial = openblas_get_parallel() == OPENBLAS_SEQUENTIAL;
  return is_serial ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

CBLAS_TRANSPOSE order_of(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, float alpha, Factor<float> a, Factor<float> b, float beta,
          float* c, int64_t ldc) {
  use_one_thread();
  const auto lock = lock_serial_build();
  cblas_sgemm(CblasRowMajor, order_of(a.transposed), order_of(b.transposed), static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a.data, static_cast<int>(a.ld), b.data,
              static_cast<int>(b.ld), beta, c, static_cast<int>(ldc));
}

void gemm(int64_t m, int64_t n, int64_t k, double alpha, Factor<double> a, Factor<double> b, double beta,
          double* c, int64_t ldc) {
  use_one_thread();
  const auto lock = lock_serial_build();
  cblas_dgemm(CblasRowMajor, order_of(a.transposed), order_of(b.transposed), static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a.data, static_cast<int>(a.ld), b.data,
              static_cast<int>(b.ld), beta, c, static_cast<int>(ldc));
}

const char* build() {
  const int kind = openblas_get_parallel();
  return kind == OPENBLAS_SEQUENTIAL ? "serial" : kind == OPENBLAS_OPENMP ? "openmp" : "pthread";
}

}  // namespace heed::blas
