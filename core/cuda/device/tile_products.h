// Products of tiles in shared memory by blocks of 128 threads. A tile has 64 rows; each thread computes eight
// of them, with its sums in registers. All chunked kernels without rounding use dots(), gather() and outer().
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/async.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/host_device.h"

namespace heed::cuda {

inline constexpr int tile_rows = 64;       ///< rows of a tile
inline constexpr int tile_threads = 128;   ///< threads that share it: 16 a row, 8 rows a thread
inline constexpr int rows_per_thread = 8;  ///< rows of a thread

/// Distance between the rows of a tile of `width` numbers: four numbers of padding, so rows start in
/// different memory banks.
HEED_BOTH constexpr int tile_ld(int width) { return width + 4; }
/// Size of a tile of 64 rows, in numbers.
HEED_BOTH constexpr int tile_size(int width) { return tile_rows * tile_ld(width); }

/// Number of tiles that `rows` rows need.
HEED_BOTH constexpr int64_t tiles_of(int64_t rows) { return ceil_div(rows, tile_rows); }

/// The rows and columns of a tile that this thread computes: 8 rows, and in each row the columns of one of 16
/// threads.
struct TileThread {
  int x, y;  ///< 0 to 15 along a row, 0 to 7 down the rows
  __device__ TileThread() : x(static_cast<int>(threadIdx.x) % 16), y(static_cast<int>(threadIdx.x) / 16) {}
  __device__ int row(int r) const { return 4 * y + r % 4 + r / 4 * 32; }
  /// The n-th of this thread's four columns in dots().
  __device__ int key(int n) const { return x + 16 * n; }
  /// The n-th of this thread's C columns in gather() and outer().
  template <int C>
  __device__ int column(int n) const {
    if constexpr (C <= 4) return C * x + n;
    return 4 * x + n % 4 + n / 4 * 64;
  }
};

/// to = this thread's C columns of one row; C is 2, 4 or 8, for rows of 16 C numbers.
template <class T, int C>
__device__ inline void columns_of(const TileThread& thread, const T* row, T (&to)[C]) {
  constexpr int each = C < 4 ? C : 4;
#pragma unroll
  for (int n = 0; n < C; n += each) {
    const auto pack = *reinterpret_cast<const Pack<T, each>*>(row + thread.column<C>(n));
#pragma unroll
    for (int e = 0; e < each; ++e) to[n + e] = pack.x[e];
  }
}

/// sum[r][n] += a[row r] . b[key n] over `depth` numbers, a multiple of four.
template <class T, int lda, int ldb>
__device__ inline void dots(const TileThread& thread, const T* a, const T* b, int depth,
                            T (&sum)[rows_per_thread][4]) {
  for (int c = 0; c < depth; c += 4) {
    Pack<T, 4> right[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) right[n] = *reinterpret_cast<const Pack<T, 4>*>(b + thread.key(n) * ldb + c);
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const auto left = *reinterpret_cast<const Pack<T, 4>*>(a + thread.row(r) * lda + c);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[r][n] += left.x[e] * right[n].x[e];
      }
    }
  }
}

/// sum[r][n] += sum over j < count of p[row r][j] b[j][column n]; count is a multiple of four.
template <class T, int ldp, int ldb, int C>
__device__ inline void gather(const TileThread& thread, const T* p, const T* b, int count,
                              T (&sum)[rows_per_thread][C]) {
  for (int j = 0; j < count; j += 4) {
    T right[4][C];
#pragma unroll
    for (int e = 0; e < 4; ++e) columns_of<T, C>(thread, b + (j + e) * ldb, right[e]);
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const auto left = *reinterpret_cast<const Pack<T, 4>*>(p + thread.row(r) * ldp + j);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int n = 0; n < C; ++n) sum[r][n] += left.x[e] * right[e][n];
      }
    }
  }
}

/// sum[r][n] += sum over t < count of a[t][row r] b[t][column n].
template <class T, int lda, int ldb, int C>
__device__ inline void outer(const TileThread& thread, const T* a, const T* b, int count,
                             T (&sum)[rows_per_thread][C]) {
  for (int t = 0; t < count; ++t) {
    T right[C];
    columns_of<T, C>(thread, b + t * ldb, right);
#pragma unroll
    for (int r = 0; r < rows_per_thread; r += 4) {
      const auto left = *reinterpret_cast<const Pack<T, 4>*>(a + t * lda + thread.row(r));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int n = 0; n < C; ++n) sum[r + e][n] += left.x[e] * right[n];
      }
    }
  }
}

/// Reduces the numbers of the 16 threads of a row by f; all of them get the result.
template <class T, class F>
__device__ inline T across_row(T x, F f) {
#pragma unroll
  for (int bits = 8; bits > 0; bits /= 2) x = f(x, __shfl_xor_sync(0xffffffffU, x, bits));
  return x;
}
template <class T>
__device__ inline T sum_of_row(T x) {
  return across_row(x, [](T a, T b) { return a + b; });
}

/// Starts to copy rows at(0), at(1), ... of `width` numbers into a tile of rows of `wide`, zeros behind them
/// and for rows where at() is null. `wide` is a multiple of 16 bytes; `somewhere` any device address.
template <class T, int wide, class At>
__device__ inline void fetch_tile(T* tile, int width, const T* somewhere, At at) {
  constexpr int whole = 16 / static_cast<int>(sizeof(T)), pieces = wide / whole;
  // An aligned address for pieces of which nothing is read.
  const void* const nothing =
      reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(somewhere) & ~uintptr_t{15});
  for (int e = static_cast<int>(threadIdx.x); e < tile_rows * pieces; e += tile_threads) {
    const int row = e / pieces, c = e % pieces * whole;
    const T* from = at(row);
    T* to = tile + row * tile_ld(wide) + c;
    const int count = from == nullptr ? 0 : min(max(width - c, 0), whole);
    if (count == 0) {
      copy_async<16>(to, nothing, 0);
    } else if (reinterpret_cast<uintptr_t>(from + c) % 16 == 0) {
      copy_async<16>(to, from + c, count * static_cast<int>(sizeof(T)));
    } else {
      constexpr int size = static_cast<int>(sizeof(T));
#pragma unroll
      for (int n = 0; n < whole; ++n)
        copy_async<size>(to + n, n < count ? from + c + n : nothing, n < count ? size : 0);
    }
  }
}

/// Starts to copy `rows` rows of `width` numbers, `ld` apart, into a tile of rows of `wide`, zeros behind
/// them.
template <class T, int wide>
__device__ inline void fetch_tile(T* tile, const T* from, int64_t ld, int64_t rows, int64_t width) {
  fetch_tile<T, wide>(tile, static_cast<int>(width < wide ? width : wide), from,
                      [=](int row) { return row < rows ? from + row * ld : nullptr; });
}

/// dots() of rows of `width` numbers, slice by slice of D numbers: fetch_left(c) and fetch_right(c) start to
/// copy the slices that begin at number c into `left` and `right`.
template <class T, int D, class Left, class Right>
__device__ inline void dots_of_slices(const TileThread& thread, const T* left, const T* right, int64_t width,
                                      Left fetch_left, Right fetch_right, T (&sum)[rows_per_thread][4]) {
  for (int64_t c = 0; c < width; c += D) {
    __syncthreads();
    fetch_left(c);
    fetch_right(c);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    dots<T, tile_ld(D), tile_ld(D)>(thread, left, right, D, sum);
  }
  __syncthreads();
}

/// Writes this thread's part of a map [64, 64] into a tile.
template <class T>
__device__ inline void put_map(const TileThread& thread, const T (&map)[rows_per_thread][4], T* tile) {
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) tile[thread.row(r) * tile_ld(tile_rows) + thread.key(n)] = map[r][n];
  }
}

/// Writes this thread's columns of one row of `width` numbers to device memory.
template <class T, int C>
__device__ inline void put_columns(const TileThread& thread, const T (&from)[C], int64_t width, T* row) {
  constexpr int each = C < 4 ? C : 4;
  const bool aligned = reinterpret_cast<uintptr_t>(row) % alignof(Pack<T, each>) == 0;
#pragma unroll
  for (int n = 0; n < C; n += each) {
    const int c = thread.column<C>(n);
    if (aligned && c + each <= width) {
      Pack<T, each> pack;
#pragma unroll
      for (int e = 0; e < each; ++e) pack.x[e] = from[n + e];
      *reinterpret_cast<Pack<T, each>*>(row + c) = pack;
    } else {
#pragma unroll
      for (int e = 0; e < each; ++e) {
        if (c + e < width) row[c + e] = from[n + e];
      }
    }
  }
}

template <int C, class T>
__device__ inline void clear(T (&sum)[rows_per_thread][C]) {
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) sum[r][n] = T(0);
  }
}

}  // namespace heed::cuda
