// Matrix products in bf16 with sums in f32, for CPUs with AVX512-BF16 or AMX. Both operands are rounded and
// packed once: a 32-bit word holds a pair, two numbers adjacent along the inner extent, which one instruction
// multiplies and adds.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/isa.h"
#include "heed/core/kernels/gemm/gemm_tiles.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
#include "heed/core/kernels/gemm/gemm_amx.h"
#endif

namespace heed::kernel::bf16_tiles {

using tiles::columns;
using tiles::Factors;
using tiles::Left;
using tiles::Right;
using tiles::width;

/// Pairs of a strip that are multiplied at a time, so that they stay in the cache.
inline constexpr int64_t max_pairs = 512;

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
inline constexpr bool built = true;  ///< false where the compiler lacks the instructions

/// Rounds two rows of 16 floats and pairs them: the numbers of `low` become the lower halves of the words,
/// those of `high` the upper halves.
__attribute__((target("avx512bf16"))) inline __m512i paired(__m512 low, __m512 high) {
  alignas(64) static constexpr uint16_t in_turns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(in_turns), (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

/// A mask of the first `count` of sixteen lanes.
inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

/// Rounds x[0] to x[31] to 16 pairs, with zeros from x[count] on.
__attribute__((target("avx512bf16"))) inline __m512i adjacent_pairs(const float* x, int64_t count) {
  const __m512 low = _mm512_maskz_loadu_ps(first_lanes(count), x),
               high = _mm512_maskz_loadu_ps(first_lanes(count - 16), x + 16);
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/// Transposes 16 x 16 words in registers.
inline void transpose(__m512i (&words)[16]) {
  tiles::Vector x[16];
  std::memcpy(x, words, sizeof x);
  tiles::transpose(x);
  std::memcpy(words, x, sizeof x);
}

/// packed[i, p] = pair (x[i, 2 p], x[i, 2 p + 1]), for `count` contiguous rows of `depth` floats, `stride`
/// apart.
__attribute__((target("avx512bf16"))) inline void pack_contiguous_rows(const float* x, int64_t stride,
                                                                       int64_t count, int64_t depth,
                                                                       uint32_t* packed) {
  const int64_t pairs = pairs_of(depth);
  for (int64_t i = 0; i < count; ++i, x += stride, packed += pairs) {
    int64_t l = 0;
    for (; l + 32 <= depth; l += 32) {
      const __m512 low = _mm512_loadu_ps(x + l), high = _mm512_loadu_ps(x + l + 16);
      _mm512_storeu_si512(packed + l / 2, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
    if (l < depth) _mm512_storeu_si512(packed + l / 2, adjacent_pairs(x + l, depth - l));
  }
}

/// packed[i, p] = pair (x[i, 2 p], x[i, 2 p + 1]), for `count` rows of `depth` floats whose element (i, l) is
/// at x[l step + i], with zeros up to `pairs`, a multiple of sixteen.
__attribute__((target("avx512bf16"))) inline void pack_strided_rows(const float* x, int64_t step,
                                                                    int64_t count, int64_t depth,
                                                                    int64_t pairs, uint32_t* packed) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 valid = first_lanes(count - i);
    for (int64_t l = 0; l < 2 * pairs; l += 32) {
      __m512i words[16];
      for (int64_t p = 0; p < 16; ++p) {
        const int64_t column = l + 2 * p;
        const __m512 low =
            column < depth ? _mm512_maskz_loadu_ps(valid, x + column * step + i) : _mm512_setzero_ps();
        const __m512 high = column + 1 < depth ? _mm512_maskz_loadu_ps(valid, x + (column + 1) * step + i)
                                               : _mm512_setzero_ps();
        words[p] = paired(low, high);
      }
      transpose(words);
      const int64_t rows = std::min<int64_t>(16, count - i);
      for (int64_t r = 0; r < rows; ++r) _mm512_storeu_si512(packed + (i + r) * pairs + l / 2, words[r]);
    }
  }
}

/// packed[p, j] = pair (b[2 p, j], b[2 p + 1, j]), for up to 64 columns of contiguous rows, `stride` floats
/// apart; zeros past column `count`.
__attribute__((target("avx512bf16"))) inline void pack_strip_of_rows(const float* b, int64_t stride,
                                                                     int64_t count, int64_t depth,
                                                                     uint32_t* packed) {
  for (int64_t l = 0; l < 2 * pairs_of(depth); l += 2, packed += columns) {
    for (int64_t j = 0; j < columns; j += 16) {
      const __mmask16 valid = first_lanes(l < depth ? count - j : 0);
      const __m512 low = _mm512_maskz_loadu_ps(valid, b + l * stride + j);
      const __m512 high =
          l + 1 < depth ? _mm512_maskz_loadu_ps(valid, b + (l + 1) * stride + j) : _mm512_setzero_ps();
      _mm512_storeu_si512(packed + j, paired(low, high));
    }
  }
}

/// packed[p, j] = pair (b[2 p, j], b[2 p + 1, j]), for up to 64 contiguous columns, `stride` floats apart;
/// zeros past column `count`.
__attribute__((target("avx512bf16"))) inline void pack_strip_of_columns(const float* b, int64_t stride,
                                                                        int64_t count, int64_t depth,
                                                                        uint32_t* packed) {
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

/// Packs rows [begin, end) of the left operand a [m, k], whose rows or columns are contiguous: a.step or
/// a.row_stride is 1.
inline void pack_left(const Left& a, int64_t begin, int64_t end, int64_t k, uint32_t* words) {
  uint32_t* packed = words + begin * pairs_of(k);
  if (a.step == 1) {
    pack_contiguous_rows(a.data + begin * a.row_stride, a.row_stride, end - begin, k, packed);
  } else {
    pack_strided_rows(a.data + begin, a.step, end - begin, k, pairs_of(k), packed);
  }
}

/// Packs one strip of the right operand b [k, n].
inline void pack_right(const Right& b, int64_t strip, int64_t n, int64_t k, uint32_t* words) {
  uint32_t* packed = words + strip * columns * pairs_of(k);
  const int64_t column = strip * columns, count = std::min(columns, n - column);
  if (b.transposed) {
    pack_strip_of_columns(b.data + column * b.stride, b.stride, count, k, packed);
  } else {
    pack_strip_of_rows(b.data + column, b.stride, count, k, packed);
  }
}

/// c[r, j] = alpha sum_p left[r, p] strip[p, j] + beta c[r, j] for R rows r, `pairs` pairs p and `count`
/// columns j, in V vectors, where the product of two pairs is the sum of two products. Rows of `left` are
/// `row_stride` words apart.
template <int R, int V>
__attribute__((target("avx512bf16"))) void multiply_block(const uint32_t* left, int64_t row_stride,
                                                          const uint32_t* strip, int64_t pairs,
                                                          Factors factors, float* c, int64_t ldc,
                                                          int64_t count) {
  __m512 sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < pairs; ++p, strip += columns, ++left) {
    __m512i part[V];
    for (int v = 0; v < V; ++v) part[v] = _mm512_loadu_si512(strip + v * width);
    for (int r = 0; r < R; ++r) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(left[r * row_stride]));
      for (int v = 0; v < V; ++v)
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)factor, (__m512bh)part[v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      const __mmask16 valid = first_lanes(count - v * width);
      float* c_vector = c + r * ldc + v * width;
      __m512 out = _mm512_mul_ps(_mm512_set1_ps(factors.alpha), sum[r][v]);
      if (factors.beta != 0)
        out = _mm512_fmadd_ps(_mm512_set1_ps(factors.beta), _mm512_maskz_loadu_ps(valid, c_vector), out);
      _mm512_mask_storeu_ps(c_vector, valid, out);
    }
  }
}

/// Writes c[r, j] = alpha sums[r, j] + beta c[r, j] for `rows` rows and `count` columns, at most 32 each.
inline void put_block(const float (&sums)[32][32], int64_t rows, int64_t count, Factors factors, float* c,
                      int64_t ldc) {
  for (int64_t j = 0; j < count; j += 16) {
    const __mmask16 valid = first_lanes(count - j);
    for (int64_t r = 0; r < rows; ++r) {
      float* to = c + r * ldc + j;
      __m512 out = _mm512_mul_ps(_mm512_set1_ps(factors.alpha), _mm512_load_ps(&sums[r][j]));
      if (factors.beta != 0)
        out = _mm512_fmadd_ps(_mm512_set1_ps(factors.beta), _mm512_maskz_loadu_ps(valid, to), out);
      _mm512_mask_storeu_ps(to, valid, out);
    }
  }
}

/// multiply() by AMX, in blocks of 32 x 32. Reads up to fifteen rows past those of `left`, whose results it
/// drops.
inline void multiply_by_amx(const Packed& shape, const uint32_t* left, const uint32_t* right, int64_t rows,
                            int64_t num_columns, int64_t inner, int64_t depth, Factors factors, float* c,
                            int64_t ldc) {
  const amx_tiles::Shaped shaped;
  const int64_t row_stride = shape.pairs(), begin = inner / 2, end = begin + pairs_of(depth);
  alignas(64) float sums[32][32];
  for (int64_t first = begin; first < end; first += max_pairs) {
    const int64_t pairs = std::min(max_pairs, end - first);
    const Factors chunk_factors{factors.alpha, first == begin ? factors.beta : 1.0F};
    for (int64_t j = 0; j < num_columns; j += 32) {
      const uint32_t* strip = right + j / columns * columns * row_stride + first * columns + j % columns;
      const int64_t count = std::min<int64_t>(32, num_columns - j);
      for (int64_t i = 0; i < rows; i += 32) {
        const int64_t block_rows = std::min<int64_t>(32, rows - i);
        amx_tiles::multiply_block(block_rows > 16, count > 16, left + i * row_stride + first, row_stride,
                                  strip, columns, pairs, /*add=*/false, &sums[0][0], 32);
        put_block(sums, block_rows, count, chunk_factors, c + i * ldc + j, ldc);
      }
    }
  }
}

/// Computes a tile [rows, num_columns] of c = alpha a b + beta c, over `depth` of the inner extent from
/// `inner` on, which is even, and a multiple of inner_unit with AMX. `left` and `right` point to the packed
/// rows and strips of the tile.
inline void multiply(const Packed& shape, const uint32_t* left, const uint32_t* right, int64_t rows,
                     int64_t num_columns, int64_t inner, int64_t depth, Factors factors, float* c,
                     int64_t ldc) {
  if (has_amx()) return multiply_by_amx(shape, left, right, rows, num_columns, inner, depth, factors, c, ldc);
  const int64_t row_stride = shape.pairs(), begin = inner / 2, all_pairs = (depth + 1) / 2;
  const int64_t chunks = std::max<int64_t>(1, ceil_div(all_pairs, max_pairs));
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t first = begin + chunk * all_pairs / chunks,
                  pairs = begin + (chunk + 1) * all_pairs / chunks - first;
    const Factors chunk_factors{factors.alpha, chunk == 0 ? factors.beta : 1.0F};
    for (int64_t j = 0; j < num_columns; j += columns) {
      const int64_t count = std::min(columns, num_columns - j);
      const uint32_t* strip = right + (j * row_stride + first * columns);
      with_constant<4>(ceil_div(count, width), [&](auto vectors) {
        constexpr int V = decltype(vectors)::value;
        const int64_t blocks = ceil_div(rows, tiles::block_rows<V>);
        for (int64_t i = 0; i < blocks; ++i) {
          const int64_t row = i * rows / blocks;
          with_constant<tiles::block_rows<V>>((i + 1) * rows / blocks - row, [&](auto R) {
            multiply_block<decltype(R)::value, V>(left + first + row * row_stride, row_stride, strip, pairs,
                                                  chunk_factors, c + j + row * ldc, ldc, count);
          });
        }
      });
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
