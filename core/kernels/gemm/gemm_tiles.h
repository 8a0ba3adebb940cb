// The f32 product of one tile, for CPUs with 64-byte vectors. The right operand is packed into strips of 64
// columns that stay in the cache; the left one is read in place, so few rows or small matrices cost no
// packing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel::tiles {

#if defined(__AVX512F__)
inline constexpr bool worthwhile = true;
#else
inline constexpr bool worthwhile = false;  ///< too few registers: BLAS does better
#endif
#if defined(__AVX2__)
inline constexpr bool rows_worthwhile = true;  ///< products of one row
#else
inline constexpr bool rows_worthwhile = false;
#endif

inline constexpr int64_t width = 16;       ///< floats in a vector
inline constexpr int64_t columns = 64;     ///< of a strip
inline constexpr int64_t max_depth = 512;  ///< rows of a strip
inline constexpr int64_t few_rows = 48;    ///< up to this many rows, a strip with dense rows is read in place

/// Rows computed at once with V vectors of columns: their sums, V loads and a factor fill 32 registers.
template <int V>
inline constexpr int block = V == 1   ? 14
                             : V == 2 ? 12
                             : V == 3 ? 8
                             : V == 4 ? 6
                                      : 2;

using Vector = lanes::vector<float>;

/// The left operand: element (r, l) is at r `row` + l `step`.
struct Left {
  const float* at;
  int64_t row, step;
};

struct Factors {
  float alpha, beta;
};

/// c[r, j] = alpha sum_l a[r, l] strip[l, j] + beta c[r, j] for R rows and `count` columns, V vectors of
/// them.
template <int R, int V, bool dense>
void micro(const Left& a, const float* strip, int64_t stride, int64_t depth, Factors factors, float* c,
           int64_t ldc, int64_t count) {
  Vector sum[R][V] = {};
  const float* left = a.at;
  for (int64_t l = 0; l < depth; ++l, strip += stride, left += dense ? 1 : a.step) {
    Vector part[V];
    for (int v = 0; v < V; ++v) lanes::load<float>(part[v], strip + v * width);
    for (int r = 0; r < R; ++r) {
      const float factor = left[r * (dense ? a.row : 1)];
      for (int v = 0; v < V; ++v) sum[r][v] += factor * part[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* to = c + r * ldc + v * width;
      const int64_t rest = count - v * width;
      Vector before{}, out = factors.alpha * sum[r][v];
      if (rest >= width) {
        if (factors.beta != 0) {
          lanes::load<float>(before, to);
          out += factors.beta * before;
        }
        std::memcpy(to, &out, lanes::width_bytes);
      } else {
        for (int64_t i = 0; i < rest; ++i) to[i] = factors.beta != 0 ? out[i] + factors.beta * to[i] : out[i];
      }
    }
  }
}

template <int R, int V, bool dense>
void micro_of(int64_t rows, const Left& a, const float* strip, int64_t stride, int64_t depth, Factors factors,
              float* c, int64_t ldc, int64_t count) {
  if (rows == R) return micro<R, V, dense>(a, strip, stride, depth, factors, c, ldc, count);
  if constexpr (R > 1) micro_of<R - 1, V, dense>(rows, a, strip, stride, depth, factors, c, ldc, count);
}

template <int V, bool dense>
void rows_of(const Left& a, int64_t rows, const float* strip, int64_t stride, int64_t depth, Factors factors,
             float* c, int64_t ldc, int64_t count) {
  const int64_t blocks = (rows + block<V> - 1) / block<V>;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t row = i * rows / blocks;  // blocks of about equally many rows
    const Left from{a.at + row * a.row, a.row, a.step};
    micro_of<block<V>, V, dense>((i + 1) * rows / blocks - row, from, strip, stride, depth, factors,
                                 c + row * ldc, ldc, count);
  }
}

/// c[r, j] = alpha sum_l a[r, l] strip[l, j] + beta c[r, j] for all rows r and `count` columns j, by the
/// loops that are compiled for as many vectors of columns.
template <bool dense>
void strip_of(const Left& a, int64_t rows, const float* strip, int64_t stride, int64_t depth, Factors factors,
              float* c, int64_t ldc, int64_t count) {
  switch (ceil_div(count, width)) {
    case 1:
      return rows_of<1, dense>(a, rows, strip, stride, depth, factors, c, ldc, count);
    case 2:
      return rows_of<2, dense>(a, rows, strip, stride, depth, factors, c, ldc, count);
    case 3:
      return rows_of<3, dense>(a, rows, strip, stride, depth, factors, c, ldc, count);
    case 4:
      return rows_of<4, dense>(a, rows, strip, stride, depth, factors, c, ldc, count);
    default:
      return rows_of<8, dense>(a, rows, strip, stride, depth, factors, c, ldc, count);
  }
}

template <int step, int... lane>
inline void exchange(Vector (&x)[16], std::integer_sequence<int, lane...>) {
  for (int i = 0; i < 16; ++i) {
    if ((i & step) != 0) continue;
    const Vector a = x[i], b = x[i + step];
    x[i] = __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane : 16 + lane - step)...);
    x[i + step] = __builtin_shufflevector(a, b, ((lane & step) == 0 ? lane + step : 16 + lane)...);
  }
}

/// One round of the transposition: vectors `step` apart swap halves.
template <int step>
inline void exchange(Vector (&x)[16]) {
  exchange<step>(x, std::make_integer_sequence<int, 16>{});
}

/// strip[l, j] = b[j, l] for 16 columns j, ldb apart, and 16 rows l.
inline void turn_block(const float* b, int64_t ldb, float* strip) {
  Vector x[16];
  for (int i = 0; i < 16; ++i) lanes::load<float>(x[i], b + i * ldb);
  exchange<8>(x);
  exchange<4>(x);
  exchange<2>(x);
  exchange<1>(x);
  for (int i = 0; i < 16; ++i) std::memcpy(strip + i * columns, &x[i], lanes::width_bytes);
}

/// Packs a strip of columns of b with dense columns; the last vector is padded with zeros.
inline void turn(const float* b, int64_t ldb, int64_t depth, int64_t count, float* strip) {
  for (int64_t j = 0; j < count; j += width) {
    int64_t l = 0;
    if (j + width <= count) {
      for (; l + width <= depth; l += width) turn_block(b + j * ldb + l, ldb, strip + l * columns + j);
    }
    for (; l < depth; ++l) {
      for (int64_t i = 0; i < width; ++i)
        strip[l * columns + j + i] = j + i < count ? b[(j + i) * ldb + l] : 0.0F;
    }
  }
}

/// Packs a strip of columns of b with dense rows.
inline void copy(const float* b, int64_t ldb, int64_t depth, int64_t count, float* strip) {
  for (int64_t l = 0; l < depth; ++l) {
    float* to = strip + l * columns;
    if (count == columns) {
      std::memcpy(to, b + l * ldb, columns * sizeof(float));
    } else {
      std::copy_n(b + l * ldb, count, to);
      std::fill(to + count, to + ceil_div(count, width) * width, 0.0F);
    }
  }
}

/// R rows and 4 columns of c where both operands are dense along the inner extent.
template <int R>
void dots(const Left& a, const float* b, int64_t ldb, float* c, int64_t ldc, int64_t k, int64_t count,
          Factors factors) {
  Vector sum[R][4] = {};
  const float* column[4];
  for (int j = 0; j < 4; ++j) column[j] = b + std::min<int64_t>(j, count - 1) * ldb;
  int64_t l = 0;
  for (; l + width <= k; l += width) {
    Vector right[4], left;
    for (int j = 0; j < 4; ++j) lanes::load<float>(right[j], column[j] + l);
    for (int r = 0; r < R; ++r) {
      lanes::load<float>(left, a.at + r * a.row + l);
      for (int j = 0; j < 4; ++j) sum[r][j] += left * right[j];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int64_t j = 0; j < count; ++j) {
      float total = lanes::across<float>(sum[r][j]);
      for (int64_t i = l; i < k; ++i) total += a.at[r * a.row + i] * column[j][i];
      float& to = c[r * ldc + j];
      to = factors.beta == 0 ? factors.alpha * total : factors.alpha * total + factors.beta * to;
    }
  }
}

/// c = alpha a b + beta c for up to six rows, without packing b.
inline void multiply_dots(const Left& a, const float* b, int64_t ldb, float* c, int64_t ldc, int64_t m,
                          int64_t n, int64_t k, Factors factors) {
  for (int64_t j = 0; j < n; j += 4) {
    const int64_t count = std::min<int64_t>(4, n - j);
    switch (m) {
      case 1:
        dots<1>(a, b + j * ldb, ldb, c + j, ldc, k, count, factors);
        break;
      case 2:
        dots<2>(a, b + j * ldb, ldb, c + j, ldc, k, count, factors);
        break;
      case 3:
        dots<3>(a, b + j * ldb, ldb, c + j, ldc, k, count, factors);
        break;
      case 4:
        dots<4>(a, b + j * ldb, ldb, c + j, ldc, k, count, factors);
        break;
      case 5:
        dots<5>(a, b + j * ldb, ldb, c + j, ldc, k, count, factors);
        break;
      default:
        dots<6>(a, b + j * ldb, ldb, c + j, ldc, k, count, factors);
        break;
    }
  }
}

/// The right operand of a tile: dense rows, or dense columns where it is transposed, `stride` apart.
struct Right {
  const float* at;
  int64_t stride;
  bool turned;
};

/// All strips of a tile, for at most `max_depth` of the inner extent.
inline void strips(const Left& a, const Right& b, int64_t first, int64_t depth, float* c, int64_t ldc,
                   int64_t m, int64_t n, Factors factors) {
  alignas(64) float buffer[max_depth * columns];
  int64_t count = 0;
  for (int64_t j = 0; j < n; j += count) {
    count = std::min(columns, n - j);
    const float* strip = buffer;
    int64_t stride = columns;
    if (b.turned) {
      turn(b.at + j * b.stride + first, b.stride, depth, count, buffer);
    } else if (m <= few_rows && count % width == 0) {
      // With one or two rows, a strip twice as wide keeps enough sums in flight.
      if (m <= 2 && n - j >= 2 * columns) count = 2 * columns;
      strip = b.at + first * b.stride + j;
      stride = b.stride;
    } else {
      copy(b.at + first * b.stride + j, b.stride, depth, count, buffer);
    }
    if (a.step == 1) {
      strip_of<true>(a, m, strip, stride, depth, factors, c + j, ldc, count);
    } else {
      strip_of<false>(a, m, strip, stride, depth, factors, c + j, ldc, count);
    }
  }
}

/// The same for a left operand with dense columns: panels of it are gathered, since their lines lie far
/// apart.
inline void strips_of_panels(const Left& a, const Right& b, int64_t first, int64_t depth, float* c,
                             int64_t ldc, int64_t m, int64_t n, Factors factors) {
  constexpr int64_t most = 192;
  alignas(64) float panel[max_depth * most];
  const int64_t panels = ceil_div(m, most);
  for (int64_t i = 0; i < panels; ++i) {
    const int64_t row = i * m / panels, rows = (i + 1) * m / panels - row;
    for (int64_t l = 0; l < depth; ++l) std::copy_n(a.at + row + l * a.step, rows, panel + l * rows);
    strips({panel, 1, rows}, b, first, depth, c + row * ldc, ldc, rows, n, factors);
  }
}

/// c = alpha a b + beta c for a tile of m x n.
inline void multiply(const Left& a, const Right& b, float* c, int64_t ldc, int64_t m, int64_t n, int64_t k,
                     Factors factors) {
  if (b.turned && m <= 6 && a.step == 1 && k >= 2 * width) {
    return multiply_dots(a, b.at, b.stride, c, ldc, m, n, k, factors);
  }
  const int64_t chunks = std::max<int64_t>(1, ceil_div(k, max_depth));
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t first = chunk * k / chunks, depth = (chunk + 1) * k / chunks - first;
    const Left left{a.at + first * a.step, a.row, a.step};
    const Factors now{factors.alpha, chunk == 0 ? factors.beta : 1.0F};
    if (a.step != 1 && a.row == 1 && m > few_rows && n > columns) {
      strips_of_panels(left, b, first, depth, c, ldc, m, n, now);
    } else {
      strips(left, b, first, depth, c, ldc, m, n, now);
    }
  }
}

}  // namespace heed::kernel::tiles
