// Matrix products in bf16 with sums in f32, for CPUs with AVX512-BF16 or AMX, of operands packed by
// gemm_bf16_packing.h.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/kernels/gemm/gemm_bf16_packing.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
#include "heed/core/kernels/gemm/gemm_amx.h"
#endif

namespace heed::kernel::bf16_tiles {

using tiles::width;

/// Pairs of a strip that are multiplied at a time, so that they stay in the cache.
inline constexpr int64_t max_pairs = 512;

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
inline constexpr bool built = true;  ///< false where the compiler lacks the instructions

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
#endif

}  // namespace heed::kernel::bf16_tiles
