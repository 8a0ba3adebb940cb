// The f32 product of one tile, for CPUs with 64-byte vectors. The right operand is packed into strips of 64
// columns that stay in the cache; the left one is read in place, so few rows or small matrices cost no
// packing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/simd/with_constant.h"

namespace heed::kernel::tiles {

#if defined(__AVX512F__)
inline constexpr bool worthwhile = true;  ///< true where multiply() is faster than OpenBLAS
#else
inline constexpr bool worthwhile = false;  // too few registers
#endif

inline constexpr int64_t width = 16;       ///< floats in a vector
inline constexpr int64_t columns = 64;     ///< number of columns of a strip
inline constexpr int64_t max_depth = 512;  ///< number of rows of a strip
inline constexpr int64_t max_rows_in_place =
    48;  ///< rows of a up to which contiguous rows of b are read in place

/// Rows of c computed at once with V vectors of columns: their sums, V loads and a factor fill 32 registers.
template <int V>
inline constexpr int block_rows = V == 1   ? 14
                                  : V == 2 ? 12
                                  : V == 3 ? 8
                                  : V == 4 ? 6
                                           : 2;

using Vector __attribute__((vector_size(width * sizeof(float)))) = float;

inline void load(Vector& to, const float* from) { std::memcpy(&to, from, sizeof to); }

/// The left operand: element (r, l) is data[r row_stride + l step].
struct Left {
  const float* data;
  int64_t row_stride, step;
};

/// c[r, j] = alpha sum_l a[r, l] strip[l, j] + beta c[r, j] for R rows r and `count` columns j, in V vectors.
/// The R V sums stay in registers. Where `contiguous`, a.step is 1, else a.row_stride.
template <int R, int V, bool contiguous>
void multiply_block(const Left& a, const float* strip, int64_t stride, int64_t depth, Factors factors,
                    float* c, int64_t ldc, int64_t count) {
  Vector sum[R][V] = {};
  const float* left = a.data;
  for (int64_t l = 0; l < depth; ++l, strip += stride, left += contiguous ? 1 : a.step) {
    Vector part[V];
    for (int v = 0; v < V; ++v) load(part[v], strip + v * width);
    for (int r = 0; r < R; ++r) {
      const float factor = left[r * (contiguous ? a.row_stride : 1)];
      for (int v = 0; v < V; ++v) sum[r][v] += factor * part[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* c_vector = c + r * ldc + v * width;
      const int64_t remaining = count - v * width;
      Vector old_c{}, out = factors.alpha * sum[r][v];
      if (remaining >= width) {
        if (factors.beta != 0) {
          load(old_c, c_vector);
          out += factors.beta * old_c;
        }
        std::memcpy(c_vector, &out, sizeof(Vector));
      } else {
        for (int64_t i = 0; i < remaining; ++i)
          c_vector[i] = factors.beta != 0 ? out[i] + factors.beta * c_vector[i] : out[i];
      }
    }
  }
}

/// c[r, j] = alpha sum_l a[r, l] strip[l, j] + beta c[r, j] for all rows r and `count` columns j, in blocks
/// of about equally many rows.
template <bool contiguous>
void multiply_strip(const Left& a, int64_t rows, const float* strip, int64_t stride, int64_t depth,
                    Factors factors, float* c, int64_t ldc, int64_t count) {
  const auto with_vectors = [&](auto vectors) {
    constexpr int V = decltype(vectors)::value;
    const int64_t blocks = ceil_div(rows, block_rows<V>);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t row = i * rows / blocks;
      const Left block{a.data + row * a.row_stride, a.row_stride, a.step};
      with_constant<block_rows<V>>((i + 1) * rows / blocks - row, [&](auto R) {
        multiply_block<decltype(R)::value, V, contiguous>(block, strip, stride, depth, factors, c + row * ldc,
                                                          ldc, count);
      });
    }
  };
  const int64_t vectors = ceil_div(count, width);
  if (vectors > 4) return with_vectors(std::integral_constant<int, 8>{});
  with_constant<4>(vectors, with_vectors);
}

/// One round of a transposition of 16 x 16 numbers: exchanges x[i][l + step] and x[i + step][l] for all i and
/// l without bit `step`.
template <int step, int... lane>
inline void exchange(Vector (&x)[16], std::integer_sequence<int, lane...>) {
  for (int i = 0; i < 16; ++i) {
    if ((i & step) != 0) continue;
    const Vector a = x[i], b = x[i + step];
    x[i] = __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane : 16 + lane - step)...);
    x[i + step] = __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane + step : 16 + lane)...);
  }
}

template <int step>
inline void exchange(Vector (&x)[16]) {
  exchange<step>(x, std::make_integer_sequence<int, 16>{});
}

/// Transposes 16 x 16 numbers in registers.
inline void transpose(Vector (&x)[16]) {
  exchange<8>(x);
  exchange<4>(x);
  exchange<2>(x);
  exchange<1>(x);
}

/// strip[l, j] = b[j, l] for 16 columns j, ldb apart, and 16 rows l.
inline void transpose_block(const float* b, int64_t ldb, float* strip) {
  Vector x[16];
  for (int i = 0; i < 16; ++i) load(x[i], b + i * ldb);
  transpose(x);
  for (int i = 0; i < 16; ++i) std::memcpy(strip + i * columns, &x[i], sizeof(Vector));
}

/// strip[l, j] = b[j, l] for `count` contiguous columns j, ldb apart; pads the last vector of columns with
/// zeros.
inline void pack_transposed(const float* b, int64_t ldb, int64_t depth, int64_t count, float* strip) {
  for (int64_t j = 0; j < count; j += width) {
    int64_t l = 0;
    if (j + width <= count) {
      for (; l + width <= depth; l += width) transpose_block(b + j * ldb + l, ldb, strip + l * columns + j);
    }
    for (; l < depth; ++l) {
      for (int64_t i = 0; i < width; ++i)
        strip[l * columns + j + i] = j + i < count ? b[(j + i) * ldb + l] : 0.0F;
    }
  }
}

/// strip[l, j] = b[l, j] for `count` columns j of contiguous rows, ldb apart; pads the last vector with
/// zeros.
inline void pack_rows(const float* b, int64_t ldb, int64_t depth, int64_t count, float* strip) {
  for (int64_t l = 0; l < depth; ++l) {
    float* strip_row = strip + l * columns;
    std::copy_n(b + l * ldb, count, strip_row);
    std::fill(strip_row + count, strip_row + ceil_div(count, width) * width, 0.0F);
  }
}

/// The right operand of a tile: its rows are contiguous, or its columns where it is transposed, `stride`
/// floats apart.
struct Right {
  const float* data;
  int64_t stride;
  bool transposed;
};

/// c = alpha a b + beta c over at most max_depth of the inner extent, from `first` on in b, strip by strip.
inline void multiply_strips(const Left& a, const Right& b, int64_t first, int64_t depth, float* c,
                            int64_t ldc, int64_t m, int64_t n, Factors factors) {
  alignas(64) float buffer[max_depth * columns];
  int64_t count = 0;
  for (int64_t j = 0; j < n; j += count) {
    count = std::min(columns, n - j);
    const float* strip = buffer;
    int64_t stride = columns;
    if (b.transposed) {
      pack_transposed(b.data + j * b.stride + first, b.stride, depth, count, buffer);
    } else if (m <= max_rows_in_place && count % width == 0) {
      // With one or two rows, a strip of twice the width keeps enough sums in flight.
      if (m <= 2 && n - j >= 2 * columns) count = 2 * columns;
      strip = b.data + first * b.stride + j;
      stride = b.stride;
    } else {
      pack_rows(b.data + first * b.stride + j, b.stride, depth, count, buffer);
    }
    if (a.step == 1) {
      multiply_strip<true>(a, m, strip, stride, depth, factors, c + j, ldc, count);
    } else {
      multiply_strip<false>(a, m, strip, stride, depth, factors, c + j, ldc, count);
    }
  }
}

/// multiply_strips() for a left operand with contiguous columns: copies panels of its rows first, since their
/// cache lines lie far apart.
inline void multiply_panels(const Left& a, const Right& b, int64_t first, int64_t depth, float* c,
                            int64_t ldc, int64_t m, int64_t n, Factors factors) {
  constexpr int64_t max_rows = 192;
  alignas(64) float panel[max_depth * max_rows];
  const int64_t panels = ceil_div(m, max_rows);
  for (int64_t i = 0; i < panels; ++i) {
    const int64_t row = i * m / panels, rows = (i + 1) * m / panels - row;
    for (int64_t l = 0; l < depth; ++l) std::copy_n(a.data + row + l * a.step, rows, panel + l * rows);
    multiply_strips({panel, 1, rows}, b, first, depth, c + row * ldc, ldc, rows, n, factors);
  }
}

/// c = alpha a b + beta c for a tile of m x n.
inline void multiply(const Left& a, const Right& b, float* c, int64_t ldc, int64_t m, int64_t n, int64_t k,
                     Factors factors) {
  const int64_t chunks = std::max<int64_t>(1, ceil_div(k, max_depth));
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t first = chunk * k / chunks, depth = (chunk + 1) * k / chunks - first;
    const Left left{a.data + first * a.step, a.row_stride, a.step};
    const Factors chunk_factors{factors.alpha, chunk == 0 ? factors.beta : 1.0F};
    if (a.step != 1 && a.row_stride == 1 && m > max_rows_in_place && n > columns) {
      multiply_panels(left, b, first, depth, c, ldc, m, n, chunk_factors);
    } else {
      multiply_strips(left, b, first, depth, c, ldc, m, n, chunk_factors);
    }
  }
}

}  // namespace heed::kernel::tiles
