// Products of few rows with a matrix whose rows are contiguous along the inner extent, such as a layer's
// weight when one token is decoded. They take the time of reading the matrix, so it is read in place, from
// its first number to its last: the order in which a CPU fetches ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "heed/core/ceil_div.h"
#include "heed/core/dtype.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/with_constant.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel::few_rows {

#if defined(__AVX2__)
inline constexpr bool worthwhile = true;  ///< true where these loops are faster than OpenBLAS
#else
inline constexpr bool worthwhile = false;  // too few registers
#endif

inline constexpr int64_t max_rows = 6;    ///< rows whose sums stay in 16 registers
inline constexpr int64_t min_inner = 32;  ///< inner extent below which adding up lanes takes most of the time

using Floats = lanes::vector<float>;

/// Number of vectors of floats that 64 bytes of W, float or bf16, are widened to, and of numbers in them.
template <class W>
inline constexpr int vectors_of = sizeof(float) / sizeof(W);
template <class W>
inline constexpr int64_t group_of = vectors_of<W>* Floats::width;

/// out[0] = b_0 ... b_15.
inline void widen(const float* b, Floats (&out)[1]) { out[0] = lanes::load(b); }

/// out[0] = b_0, b_2, ... b_30, and out[1] = b_1, b_3, ... b_31: bf16 is the upper half of a float.
inline void widen(const bf16* b, Floats (&out)[2]) {
  for (int i = 0; i < Floats::registers; ++i) {
    simd::Words<float> pairs;
    std::memcpy(&pairs, b + 2 * simd::Lanes<float>::count * i, sizeof pairs);
    out[0].part[i] = reinterpret_cast<simd::Vector<float>>(pairs << 16);
    out[1].part[i] = reinterpret_cast<simd::Vector<float>>(pairs & 0xffff0000U);
  }
}

/// Calls f(begin, end) for ranges of the columns of c [m, n]. Each range reads some microseconds of a weight
/// [n, k] of `row_bytes` a row, and begins at a cache line of c, so that no two threads write into one line.
template <class F>
void by_columns(int64_t n, int64_t row_bytes, F&& f) {
  constexpr int64_t columns = 16, bytes_per_task = int64_t{1} << 16;
  const int64_t grain = std::max<int64_t>(1, bytes_per_task / (columns * std::max<int64_t>(1, row_bytes)));
  parallel_rows(ceil_div(n, columns), grain,
                [&](int64_t begin, int64_t end) { f(begin * columns, std::min(n, end * columns)); });
}

/// sum[r] = sum_l a[r, l] b[l] for R rows of a, lda apart. Where W is bf16, each group of 32 numbers of a is
/// in the order of widen().
template <int R, class W>
void dots(const float* a, int64_t lda, const W* b, int64_t k, float (&sum)[R]) {
  // Eight or more independent sums, so that no addition waits for the one before.
  constexpr int vectors = vectors_of<W>, chains = (R == 1 ? 4 : R <= 3 ? 2 : 1) * simd::registers / 16;
  Floats partial[R][chains];
  const auto add_group = [&](int64_t l, int first_chain) {
    Floats right[vectors];
    widen(b + l, right);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r)
        partial[r][(first_chain + v) % chains] += lanes::load(a + r * lda + l + v * Floats::width) * right[v];
    }
  };
  constexpr int64_t group = group_of<W>;
  constexpr int groups = std::max(1, chains / vectors);
  int64_t l = 0;
  for (; l + groups * group <= k; l += groups * group) {
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) add_group(l + g * group, g * vectors);
  }
  for (; l + group <= k; l += group) add_group(l, 0);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 7
    for (int i = 1; i < chains; ++i) partial[r][0] += partial[r][i];
    sum[r] = lanes::across(partial[r][0]);
    for (int64_t i = l; i < k; ++i) sum[r] += a[r * lda + i] * static_cast<float>(b[i]);
  }
}

/// c [m, n] = alpha a b^T + beta c for a [m, k] of at most max_rows rows, as in dots(), and b [n, k].
template <class W>
void multiply(const float* a, int64_t lda, const W* b, int64_t ldb, float* c, int64_t ldc, int64_t m,
              int64_t n, int64_t k, Factors factors) {
  with_constant<max_rows>(m, [&](auto R) {
    for (int64_t j = 0; j < n; ++j) {
      float sum[decltype(R)::value];
      dots(a, lda, b + j * ldb, k, sum);
      for (int64_t r = 0; r < m; ++r) {
        float& c_rj = c[r * ldc + j];
        c_rj = factors.alpha * sum[r] + (factors.beta == 0 ? 0 : factors.beta * c_rj);
      }
    }
  });
}

}  // namespace heed::kernel::few_rows
