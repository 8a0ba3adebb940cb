// Products of small matrices that lie in cache: no copies, no checks, cheap to call.
#pragma once

#include <cstdint>

namespace heed::kernel {

/// How the left operand lies: element (row, depth) of it at [row ld + depth], or turned at [depth ld + row].
enum class Left : bool { straight, turned };

/// c [m, n] = a [m, k] b [k, n], added to c where `add`. b and c are row major; n is a whole number of
/// vectors (simd::padded). Returns the operations done.
template <class T>
int64_t small_gemm(Left left, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                   int64_t ldb, T* c, int64_t ldc, bool add);

}  // namespace heed::kernel
