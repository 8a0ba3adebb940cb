// Products in bf16 with sums in f32, for CPUs with AVX512-BF16. Both operands are rounded and packed once: a
// word holds two neighbours of the inner extent, which one instruction multiplies and adds.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/gemm/gemm_tiles.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heed::kernel::bf16_tiles {

using tiles::columns;
using tiles::Factors;
using tiles::Left;
using tiles::Right;
using tiles::width;

inline constexpr int64_t max_pairs = 512;  ///< of a strip at a time, so that it stays in the cache

/// Layout of two packed matrices. The left one has a line of `pairs` words for each row; the right one has
/// strips of `columns`, with a row for each pair.
struct Packed {
  int64_t m, n, k;
  int64_t pairs() const { return (k + 1) / 2; }
  int64_t strips() const { return ceil_div(n, columns); }
  int64_t left_words() const { return m * pairs(); }
  int64_t right_words() const { return strips() * columns * pairs(); }
};

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
inline constexpr bool built = true;

typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

/// Two rows of floats as words, the first in the lower halves.
__attribute__((target("avx512bf16"))) inline __m512i paired(__m512 low, __m512 high) {
  const Words lower = __builtin_convertvector((Halves)_mm512_cvtneps_pbh(low), Words);
  const Words upper = __builtin_convertvector((Halves)_mm512_cvtneps_pbh(high), Words);
  return (__m512i)(lower | upper << 16);
}

/// Neighbours of one row: 32 floats, or the first `count` of them and zeros, as 16 words.
__attribute__((target("avx512bf16"))) inline __m512i neighbours(const float* x, int64_t count) {
  const auto first = static_cast<__mmask16>(count >= 16 ? 0xffff : (1 << count) - 1);
  const auto second = static_cast<__mmask16>(count >= 32 ? 0xffff : count > 16 ? (1 << (count - 16)) - 1 : 0);
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(second, x + 16), _mm512_maskz_loadu_ps(first, x));
}

/// A mask of the first `count` of sixteen lanes.
inline __mmask16 first_of(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

inline void transpose(__m512i (&words)[16]) {
  tiles::Vector x[16];
  std::memcpy(x, words, sizeof x);
  tiles::exchange<8>(x);
  tiles::exchange<4>(x);
  tiles::exchange<2>(x);
  tiles::exchange<1>(x);
  std::memcpy(words, x, sizeof x);
}

/// to[i, pair] for lines i that are dense along the inner extent.
__attribute__((target("avx512bf16"))) inline void lines_along(const float* x, int64_t stride, int64_t count,
                                                              int64_t depth, uint32_t* to) {
  const int64_t pairs = (depth + 1) / 2;
  for (int64_t i = 0; i < count; ++i, x += stride, to += pairs) {
    int64_t l = 0;
    for (; l + 32 <= depth; l += 32) {
      const __m512 low = _mm512_loadu_ps(x + l), high = _mm512_loadu_ps(x + l + 16);
      _mm512_storeu_si512(to + l / 2, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
    if (l < depth)
      _mm512_mask_storeu_epi32(to + l / 2, first_of(pairs - l / 2), neighbours(x + l, depth - l));
  }
}

/// to[i, pair] for lines i that lie side by side, `step` floats from one element of a line to the next.
__attribute__((target("avx512bf16"))) inline void lines_across(const float* x, int64_t step, int64_t count,
                                                               int64_t depth, uint32_t* to) {
  const int64_t pairs = (depth + 1) / 2;
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 kept = first_of(count - i);
    for (int64_t l = 0; l < depth; l += 32) {
      __m512i words[16];
      for (int64_t p = 0; p < 16; ++p) {
        const int64_t at = l + 2 * p;
        const __m512 low = at < depth ? _mm512_maskz_loadu_ps(kept, x + at * step + i) : _mm512_setzero_ps();
        const __m512 high =
            at + 1 < depth ? _mm512_maskz_loadu_ps(kept, x + (at + 1) * step + i) : _mm512_setzero_ps();
        words[p] = paired(low, high);
      }
      transpose(words);
      const int64_t high = std::min<int64_t>(16, count - i);
      const __mmask16 stored = first_of(pairs - l / 2);
      for (int64_t r = 0; r < high; ++r)
        _mm512_mask_storeu_epi32(to + (i + r) * pairs + l / 2, stored, words[r]);
    }
  }
}

/// to[pair, j] for up to 64 columns j of a matrix with dense rows.
__attribute__((target("avx512bf16"))) inline void strip_along(const float* b, int64_t stride, int64_t count,
                                                              int64_t depth, uint32_t* to) {
  for (int64_t l = 0; l < depth; l += 2, to += columns) {
    for (int64_t j = 0; j < columns; j += 16) {
      const __mmask16 kept = first_of(count - j);
      const __m512 low = _mm512_maskz_loadu_ps(kept, b + l * stride + j);
      const __m512 high =
          l + 1 < depth ? _mm512_maskz_loadu_ps(kept, b + (l + 1) * stride + j) : _mm512_setzero_ps();
      _mm512_storeu_si512(to + j, paired(low, high));
    }
  }
}

/// to[pair, j] for up to 64 columns j of a matrix with dense columns, `stride` floats apart.
__attribute__((target("avx512bf16"))) inline void strip_across(const float* b, int64_t stride, int64_t count,
                                                               int64_t depth, uint32_t* to) {
  for (int64_t j = 0; j < columns; j += 16) {
    for (int64_t l = 0; l < depth; l += 32) {
      __m512i words[16];
      for (int64_t i = 0; i < 16; ++i) {
        words[i] = j + i < count ? neighbours(b + (j + i) * stride + l, depth - l) : _mm512_setzero_si512();
      }
      transpose(words);
      const int64_t pairs = (std::min<int64_t>(32, depth - l) + 1) / 2;
      for (int64_t p = 0; p < pairs; ++p) _mm512_storeu_si512(to + (l / 2 + p) * columns + j, words[p]);
    }
  }
}

/// Rows [begin, end) of the left matrix of an m x k product.
inline void pack_left(const Left& a, int64_t begin, int64_t end, int64_t k, uint32_t* words) {
  uint32_t* to = words + begin * ((k + 1) / 2);
  if (a.step == 1) {
    lines_along(a.at + begin * a.row, a.row, end - begin, k, to);
  } else {
    lines_across(a.at + begin, a.step, end - begin, k, to);
  }
}

/// One strip of the right matrix of a k x n product.
inline void pack_right(const Right& b, int64_t strip, int64_t n, int64_t k, uint32_t* words) {
  uint32_t* to = words + strip * columns * ((k + 1) / 2);
  const int64_t column = strip * columns, count = std::min(columns, n - column);
  if (b.turned) {
    strip_across(b.at + column * b.stride, b.stride, count, k, to);
  } else {
    strip_along(b.at + column, b.stride, count, k, to);
  }
}

/// R rows and V vectors of columns; a line of the left is `row` words from the next.
template <int R, int V>
__attribute__((target("avx512bf16"))) void micro(const uint32_t* left, int64_t row, const uint32_t* strip,
                                                 int64_t pairs, Factors factors, float* c, int64_t ldc,
                                                 int64_t count) {
  __m512 sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < pairs; ++p, strip += columns, ++left) {
    __m512i part[V];
    for (int v = 0; v < V; ++v) part[v] = _mm512_loadu_si512(strip + v * width);
    for (int r = 0; r < R; ++r) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(left[r * row]));
      for (int v = 0; v < V; ++v)
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)factor, (__m512bh)part[v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      const __mmask16 kept = first_of(count - v * width);
      float* to = c + r * ldc + v * width;
      __m512 out = _mm512_mul_ps(_mm512_set1_ps(factors.alpha), sum[r][v]);
      if (factors.beta != 0)
        out = _mm512_fmadd_ps(_mm512_set1_ps(factors.beta), _mm512_maskz_loadu_ps(kept, to), out);
      _mm512_mask_storeu_ps(to, kept, out);
    }
  }
}

template <int R, int V>
void micro_of(int64_t rows, const uint32_t* left, int64_t row, const uint32_t* strip, int64_t pairs,
              Factors factors, float* c, int64_t ldc, int64_t count) {
  if (rows == R) return micro<R, V>(left, row, strip, pairs, factors, c, ldc, count);
  if constexpr (R > 1) micro_of<R - 1, V>(rows, left, row, strip, pairs, factors, c, ldc, count);
}

template <int V>
void rows_of(const uint32_t* left, int64_t row, int64_t rows, const uint32_t* strip, int64_t pairs,
             Factors factors, float* c, int64_t ldc, int64_t count) {
  const int64_t blocks = (rows + tiles::block<V> - 1) / tiles::block<V>;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t first = i * rows / blocks;
    micro_of<tiles::block<V>, V>((i + 1) * rows / blocks - first, left + first * row, row, strip, pairs,
                                 factors, c + first * ldc, ldc, count);
  }
}

/// A tile [rows, columns] of c = alpha a b + beta c, over `depth` of the inner extent from `inner` (even) on.
/// `left` and `right` point to the packed rows and strips of the tile.
inline void multiply(const Packed& shape, const uint32_t* left, const uint32_t* right, int64_t rows,
                     int64_t num_columns, int64_t inner, int64_t depth, Factors factors, float* c,
                     int64_t ldc) {
  const int64_t line = shape.pairs(), begin = inner / 2, all = (depth + 1) / 2;
  const int64_t chunks = std::max<int64_t>(1, ceil_div(all, max_pairs));
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t first = begin + chunk * all / chunks, pairs = begin + (chunk + 1) * all / chunks - first;
    const Factors now{factors.alpha, chunk == 0 ? factors.beta : 1.0F};
    for (int64_t j = 0; j < num_columns; j += columns) {
      const int64_t count = std::min(columns, num_columns - j);
      const uint32_t* strip = right + (j * line + first * columns);
      switch (ceil_div(count, width)) {
        case 1:
          rows_of<1>(left + first, line, rows, strip, pairs, now, c + j, ldc, count);
          break;
        case 2:
          rows_of<2>(left + first, line, rows, strip, pairs, now, c + j, ldc, count);
          break;
        case 3:
          rows_of<3>(left + first, line, rows, strip, pairs, now, c + j, ldc, count);
          break;
        default:
          rows_of<4>(left + first, line, rows, strip, pairs, now, c + j, ldc, count);
          break;
      }
    }
  }
}
#else
inline constexpr bool built = false;

// Never called: declared so that code for other CPUs compiles.
void pack_left(const Left& a, int64_t begin, int64_t end, int64_t k, uint32_t* words);
void pack_right(const Right& b, int64_t strip, int64_t n, int64_t k, uint32_t* words);
void multiply(const Packed& shape, const uint32_t* left, const uint32_t* right, int64_t rows,
              int64_t num_columns, int64_t inner, int64_t depth, Factors factors, float* c, int64_t ldc);
#endif

}  // namespace heed::kernel::bf16_tiles
