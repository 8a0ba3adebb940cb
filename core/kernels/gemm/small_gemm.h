// Products of small matrices in the cache, without copies and checks.
#pragma once

#include <cstdint>

namespace heed::kernel {

/// Layout of the left operand: element (row, k) is at [row lda + k], or with `transposed` at [k lda + row].
enum class Left : bool { row_major, transposed };

/// c [m, n] = a [m, k] b [k, n], or c += a b with `add`. b and c are row major; n is a whole number of
/// vectors (simd::padded), all of which are read and written. Returns the number of floating-point
/// operations.
template <class T>
int64_t small_gemm(Left left, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                   int64_t ldb, T* c, int64_t ldc, bool add);

}  // namespace heed::kernel
