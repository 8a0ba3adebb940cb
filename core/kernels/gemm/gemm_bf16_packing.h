// Factors of matrix products in bf16, packed for CPUs with AVX512-BF16 or AMX: a 32-bit word holds a pair, two
// numbers adjacent along the inner extent, which one instruction multiplies and adds. Factors in f32 are
// rounded on the way; factors in bf16 are copied.
#pragma once

#include <cstring>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/gemm/gemm_tiles.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heed::kernel::bf16_tiles {

using tiles::columns;

/// Numbers of the inner extent that a matrix tile multiplies at a time; packed operands have zeros up to it.
inline constexpr int64_t inner_unit = 32;
/// Pairs of packed operands whose inner extent is k.
constexpr int64_t pairs_of(int64_t k) { return ceil_div(k, inner_unit) * (inner_unit / 2); }

/// Layout of the packed operands of a matrix product [m, k] [k, n]: words left [m, pairs] and right [strips,
/// pairs, columns].
struct Packed {
  int64_t m, n, k;
  int64_t pairs() const { return pairs_of(k); }
  int64_t strips() const { return ceil_div(n, columns); }
  int64_t left_words() const { return m * pairs(); }
  int64_t right_words() const { return strips() * columns * pairs(); }
};

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
/// A mask of the first `count` of sixteen lanes.
inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

/// Loads sixteen numbers, with zeros in lanes that are not `valid`.
inline __m512 lanes_of(const float* x, __mmask16 valid) { return _mm512_maskz_loadu_ps(valid, x); }
inline __m256i lanes_of(const bf16* x, __mmask16 valid) { return _mm256_maskz_loadu_epi16(valid, x); }

/// Pairs sixteen numbers of two rows: those of `low` become the lower halves of the words, those of `high` the
/// upper halves. Floats are rounded.
__attribute__((target("avx512bf16"))) inline __m512i paired(__m512 low, __m512 high) {
  alignas(64) static constexpr uint16_t in_turns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(in_turns), (__m512i)_mm512_cvtne2ps_pbh(high, low));
}
inline __m512i paired(__m256i low, __m256i high) {
  constexpr __mmask16 all = 0xffff;  // with a mask, the compiler's headers read nothing uninitialized
  const __m512i upper = _mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, high), 16);
  return _mm512_or_si512(_mm512_maskz_cvtepu16_epi32(all, low), upper);
}

/// The pairs of x[0] to x[31], with zeros from x[count] on.
__attribute__((target("avx512bf16"))) inline __m512i adjacent_pairs(const float* x, int64_t count) {
  return (__m512i)_mm512_cvtne2ps_pbh(lanes_of(x + 16, first_lanes(count - 16)),
                                      lanes_of(x, first_lanes(count)));
}
inline __m512i adjacent_pairs(const bf16* x, int64_t count) {
  const __mmask32 valid = count >= 32 ? ~0U : count <= 0 ? 0U : (1U << count) - 1;
  return _mm512_maskz_loadu_epi16(valid, x);
}

/// Transposes 16 x 16 words in registers.
inline void transpose(__m512i (&words)[16]) {
  tiles::Vector x[16];
  std::memcpy(x, words, sizeof x);
  tiles::transpose(x);
  std::memcpy(words, x, sizeof x);
}

/// packed[i, p] = pair (x[i, 2 p], x[i, 2 p + 1]), for `count` contiguous rows of `depth` numbers, `stride`
/// apart.
template <class E>
__attribute__((target("avx512bf16"))) void pack_contiguous_rows(const E* x, int64_t stride, int64_t count,
                                                                int64_t depth, uint32_t* packed) {
  const int64_t pairs = pairs_of(depth);
  for (int64_t i = 0; i < count; ++i, x += stride, packed += pairs) {
    int64_t l = 0;
    for (; l + 32 <= depth; l += 32) _mm512_storeu_si512(packed + l / 2, adjacent_pairs(x + l, 32));
    if (l < depth) _mm512_storeu_si512(packed + l / 2, adjacent_pairs(x + l, depth - l));
  }
}

/// packed[i, p] = pair (x[i, 2 p], x[i, 2 p + 1]), for `count` rows of `depth` numbers whose element (i, l) is
/// at x[l step + i], with zeros up to `pairs`, a multiple of sixteen.
template <class E>
__attribute__((target("avx512bf16"))) void pack_strided_rows(const E* x, int64_t step, int64_t count,
                                                             int64_t depth, int64_t pairs, uint32_t* packed) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 valid = first_lanes(count - i);
    for (int64_t l = 0; l < 2 * pairs; l += 32) {
      __m512i words[16];
      for (int64_t p = 0; p < 16; ++p) {
        const int64_t column = l + 2 * p;
        const auto lanes = [&](int64_t c) {
          return c < depth ? lanes_of(x + c * step + i, valid) : lanes_of(x, __mmask16{0});
        };
        words[p] = paired(lanes(column), lanes(column + 1));
      }
      transpose(words);
      const int64_t rows = std::min<int64_t>(16, count - i);
      for (int64_t r = 0; r < rows; ++r) _mm512_storeu_si512(packed + (i + r) * pairs + l / 2, words[r]);
    }
  }
}

/// packed[p, j] = pair (b[2 p, j], b[2 p + 1, j]), for up to 64 columns of contiguous rows, `stride` numbers
/// apart; zeros past column `count`.
template <class E>
__attribute__((target("avx512bf16"))) void pack_strip_of_rows(const E* b, int64_t stride, int64_t count,
                                                              int64_t depth, uint32_t* packed) {
  for (int64_t l = 0; l < 2 * pairs_of(depth); l += 2, packed += columns) {
    for (int64_t j = 0; j < columns; j += 16) {
      const auto lanes = [&](int64_t row) {
        return row < depth ? lanes_of(b + row * stride + j, first_lanes(count - j))
                           : lanes_of(b, __mmask16{0});
      };
      _mm512_storeu_si512(packed + j, paired(lanes(l), lanes(l + 1)));
    }
  }
}

/// packed[p, j] = pair (b[2 p, j], b[2 p + 1, j]), for up to 64 contiguous columns, `stride` numbers apart;
/// zeros past column `count`.
template <class E>
__attribute__((target("avx512bf16"))) void pack_strip_of_columns(const E* b, int64_t stride, int64_t count,
                                                                 int64_t depth, uint32_t* packed) {
  for (int64_t j = 0; j < columns; j += 16) {
    for (int64_t l = 0; l < depth; l += 32) {
      __m512i words[16];
      for (int64_t i = 0; i < 16; ++i) {
        words[i] =
            j + i < count ? adjacent_pairs(b + (j + i) * stride + l, depth - l) : _mm512_setzero_si512();
      }
      transpose(words);
      for (int64_t p = 0; p < 16; ++p) _mm512_storeu_si512(packed + (l / 2 + p) * columns + j, words[p]);
    }
  }
}

/// Packs rows [begin, end) of the left operand a [m, k] of a layout.
template <class E>
void pack_left(const E* a, Layout layout, int64_t begin, int64_t end, int64_t k, uint32_t* words) {
  uint32_t* packed = words + begin * pairs_of(k);
  if (layout.transposed) {
    pack_strided_rows(a + begin, layout.step, end - begin, k, pairs_of(k), packed);
  } else {
    pack_contiguous_rows(a + begin * layout.step, layout.step, end - begin, k, packed);
  }
}

/// Packs one strip of the right operand b [k, n] of a layout.
template <class E>
void pack_right(const E* b, Layout layout, int64_t strip, int64_t n, int64_t k, uint32_t* words) {
  uint32_t* packed = words + strip * columns * pairs_of(k);
  const int64_t column = strip * columns, count = std::min(columns, n - column);
  if (layout.transposed) {
    pack_strip_of_columns(b + column * layout.step, layout.step, count, k, packed);
  } else {
    pack_strip_of_rows(b + column, layout.step, count, k, packed);
  }
}
#endif

}  // namespace heed::kernel::bf16_tiles
