// Calls of OpenBLAS: one thread each, and in turns where the library cannot do better.
#include "heed/core/parallel/blas.h"

#include <cblas.h>

#include <mutex>

namespace heed::blas {
namespace {

std::mutex door;

/// Lets this thread call: BLAS must not start threads of its own, since the order of its sums would follow
/// their number. The OpenMP build keeps that wish for each calling thread, and moves buffers when it is told.
void settle() {
  thread_local bool settled = false;
  if (settled) return;
  const std::lock_guard one(door);
  openblas_set_num_threads(1);
  settled = true;
}

/// The serial build hands out its working memory without a lock: of two calls at once, both may get the same
/// and both go wrong.
std::unique_lock<std::mutex> turn() {
  static const bool alone = openblas_get_parallel() == OPENBLAS_SEQUENTIAL;
  return alone ? std::unique_lock(door) : std::unique_lock<std::mutex>();
}

CBLAS_TRANSPOSE lies(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, float alpha, Factor<float> a, Factor<float> b, float beta,
          float* c, int64_t ldc) {
  settle();
  const auto held_turn = turn();
  cblas_sgemm(CblasRowMajor, lies(a.transposed), lies(b.transposed), static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a.at, static_cast<int>(a.step), b.at, static_cast<int>(b.step),
              beta, c, static_cast<int>(ldc));
}

void gemm(int64_t m, int64_t n, int64_t k, double alpha, Factor<double> a, Factor<double> b, double beta,
          double* c, int64_t ldc) {
  settle();
  const auto held_turn = turn();
  cblas_dgemm(CblasRowMajor, lies(a.transposed), lies(b.transposed), static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a.at, static_cast<int>(a.step), b.at, static_cast<int>(b.step),
              beta, c, static_cast<int>(ldc));
}

const char* build() {
  const int kind = openblas_get_parallel();
  return kind == OPENBLAS_SEQUENTIAL ? "serial" : kind == OPENBLAS_OPENMP ? "openmp" : "pthread";
}

}  // namespace heed::blas
