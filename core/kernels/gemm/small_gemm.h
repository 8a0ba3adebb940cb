// Products of small matrices in cache: no copies, no checks, cheap to call.
#pragma once

#include <cstdint>

namespace heed::kernel {

/// Layout of the left operand: element (row, depth) is at [row ld + depth], or with `transposed` at
/// [depth ld + row].
enum class Left : bool { row_major, transposed };

/// c [m, n] = a [m, k] b [k, n], or c += a b with `add`. b and c are row major; n is a whole number of
/// vectors (simd::padded). Returns the number of floating-point operations.
template <class T>
int64_t small_gemm(Left left, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                   int64_t ldb, T* c, int64_t ldc, bool add);

}  // namespace heed::kernel
