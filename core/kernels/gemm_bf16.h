// The product of one tile in bfloat16 with sums in float, for CPUs with AVX512-BF16: operands are rounded
// while they are packed, two neighbours of the inner extent to a word, which one instruction multiplies and
// adds.
#pragma once

#include "core/kernels/gemm_tiles.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heed::kernel::bf16_tiles {

using tiles::columns;
using tiles::Factors;
using tiles::Left;
using tiles::Right;
using tiles::width;

inline constexpr int64_t most_depth = 1024;  ///< of the inner extent at a time: two to a word of a strip

/// Words that the packed rows of a tile take, and those of a strip.
constexpr int64_t words_of_rows(int64_t rows) { return rows * (most_depth / 2); }
inline constexpr int64_t words_of_strip = columns * (most_depth / 2);

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

/// Words of `count` lines dense along the inner extent, one line after the other, `pairs` words each.
__attribute__((target("avx512bf16"))) inline void pack_lines(const float* x, int64_t stride, int64_t count,
                                                             int64_t depth, int64_t pairs, uint32_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t l = 0; l < depth; l += 32) {
      const auto kept = static_cast<__mmask16>(pairs - l / 2 >= 16 ? 0xffff : (1 << (pairs - l / 2)) - 1);
      _mm512_mask_storeu_epi32(to + i * pairs + l / 2, kept, neighbours(x + i * stride + l, depth - l));
    }
  }
}

/// to[pair, i] for `count` numbers i dense in memory, `stride` words from pair to pair; zeros up to whole
/// vectors where `stride` has the room.
__attribute__((target("avx512bf16"))) inline void pack_across(const float* x, int64_t step, int64_t count,
                                                              int64_t depth, int64_t stride, uint32_t* to) {
  for (int64_t l = 0; l < depth; l += 2) {
    uint32_t* row = to + l / 2 * stride;
    for (int64_t i = 0; i < count; i += 16) {
      const auto kept = static_cast<__mmask16>(count - i >= 16 ? 0xffff : (1 << (count - i)) - 1);
      const auto stored = static_cast<__mmask16>(stride - i >= 16 ? 0xffff : (1 << (stride - i)) - 1);
      const __m512 low = _mm512_maskz_loadu_ps(kept, x + l * step + i);
      const __m512 high =
          l + 1 < depth ? _mm512_maskz_loadu_ps(kept, x + (l + 1) * step + i) : _mm512_setzero_ps();
      _mm512_mask_storeu_epi32(row + i, stored, paired(low, high));
    }
  }
}

/// to[pair, j] for `count` columns j dense along the inner extent, `stride` floats apart.
__attribute__((target("avx512bf16"))) inline void pack_turned(const float* b, int64_t stride, int64_t count,
                                                              int64_t depth, uint32_t* to) {
  for (int64_t j = 0; j < count; j += 16) {
    for (int64_t l = 0; l < depth; l += 32) {
      tiles::Vector x[16];
      for (int64_t i = 0; i < 16; ++i) {
        const __m512i words =
            j + i < count ? neighbours(b + (j + i) * stride + l, depth - l) : _mm512_setzero_si512();
        std::memcpy(&x[i], &words, sizeof words);
      }
      tiles::exchange<8>(x);
      tiles::exchange<4>(x);
      tiles::exchange<2>(x);
      tiles::exchange<1>(x);
      const int64_t pairs = (std::min<int64_t>(32, depth - l) + 1) / 2;
      for (int64_t i = 0; i < pairs; ++i) std::memcpy(to + (l / 2 + i) * columns + j, &x[i], sizeof x[i]);
    }
  }
}

/// R rows and V vectors of columns. Word (r, p) of the left is at r row + p step.
template <int R, int V>
__attribute__((target("avx512bf16"))) void micro(const uint32_t* left, int64_t row, int64_t step,
                                                 const uint32_t* strip, int64_t pairs, Factors factors,
                                                 float* c, int64_t ldc, int64_t count) {
  __m512 sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < pairs; ++p, strip += columns, left += step) {
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
      const int64_t rest = count - v * width;
      const auto kept = static_cast<__mmask16>(rest >= width ? 0xffff : (1 << rest) - 1);
      float* to = c + r * ldc + v * width;
      __m512 out = _mm512_mul_ps(_mm512_set1_ps(factors.alpha), sum[r][v]);
      if (factors.beta != 0)
        out = _mm512_fmadd_ps(_mm512_set1_ps(factors.beta), _mm512_maskz_loadu_ps(kept, to), out);
      _mm512_mask_storeu_ps(to, kept, out);
    }
  }
}

template <int R, int V>
void micro_of(int64_t rows, const uint32_t* left, int64_t row, int64_t step, const uint32_t* strip,
              int64_t pairs, Factors factors, float* c, int64_t ldc, int64_t count) {
  if (rows == R) return micro<R, V>(left, row, step, strip, pairs, factors, c, ldc, count);
  if constexpr (R > 1) micro_of<R - 1, V>(rows, left, row, step, strip, pairs, factors, c, ldc, count);
}

template <int V>
void rows_of(const uint32_t* left, int64_t row, int64_t step, int64_t rows, const uint32_t* strip,
             int64_t pairs, Factors factors, float* c, int64_t ldc, int64_t count) {
  const int64_t blocks = (rows + tiles::block<V> - 1) / tiles::block<V>;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t first = i * rows / blocks;
    micro_of<tiles::block<V>, V>((i + 1) * rows / blocks - first, left + first * row, row, step, strip, pairs,
                                 factors, c + first * ldc, ldc, count);
  }
}

/// c = alpha a b + beta c for a tile of m x n. Room: `left` for words_of_rows(m), `strip` for words_of_strip.
inline void multiply(const Left& a, const Right& b, float* c, int64_t ldc, int64_t m, int64_t n, int64_t k,
                     Factors factors, uint32_t* left, uint32_t* strip) {
  const int64_t chunks = std::max<int64_t>(1, (k + most_depth - 1) / most_depth);
  int64_t first = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t end = chunk + 1 == chunks ? k : (chunk + 1) * k / chunks / 2 * 2;
    const int64_t depth = end - first, pairs = (depth + 1) / 2;
    const bool lines = a.step == 1;
    if (lines) {
      pack_lines(a.at + first, a.row, m, depth, pairs, left);
    } else {
      pack_across(a.at + first * a.step, a.step, m, depth, m, left);
    }
    const int64_t row = lines ? pairs : 1, step = lines ? 1 : m;
    const Factors now{factors.alpha, chunk == 0 ? factors.beta : 1.0F};
    for (int64_t j = 0; j < n; j += columns) {
      const int64_t count = std::min(columns, n - j);
      if (b.turned) {
        pack_turned(b.at + j * b.stride + first, b.stride, count, depth, strip);
      } else {
        pack_across(b.at + first * b.stride + j, b.stride, count, depth, columns, strip);
      }
      switch ((count + width - 1) / width) {
        case 1:
          rows_of<1>(left, row, step, m, strip, pairs, now, c + j, ldc, count);
          break;
        case 2:
          rows_of<2>(left, row, step, m, strip, pairs, now, c + j, ldc, count);
          break;
        case 3:
          rows_of<3>(left, row, step, m, strip, pairs, now, c + j, ldc, count);
          break;
        default:
          rows_of<4>(left, row, step, m, strip, pairs, now, c + j, ldc, count);
          break;
      }
    }
    first = end;
  }
}
#else
inline constexpr bool built = false;

inline void multiply(const Left&, const Right&, float*, int64_t, int64_t, int64_t, int64_t, Factors,
                     uint32_t*, uint32_t*) {}
#endif

}  // namespace heed::kernel::bf16_tiles
