// Matrix products of tiles in shared memory by blocks of 128 threads, for kernels that do not round their
// factors. A tile has 64 rows, of which a thread computes eight, with its sums in registers:
//   dots()    sums += a b^T   [64, depth] [64, depth]^T
//   gather()  sums += p b     [64, count] [count, 16 C]
//   outer()   sums += a^T b   [count, 64]^T [count, 16 C]
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/async.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/host_device.h"

namespace heed::cuda {

inline constexpr int tile_rows = 64;       ///< rows of a tile
inline constexpr int tile_threads = 128;   ///< threads that share a tile: 16 along a row, 8 down the rows
inline constexpr int rows_per_thread = 8;  ///< rows of a tile that a thread computes

/// Distance between the rows of a tile with `width` columns: four numbers of padding let rows start in
/// different memory banks.
HEED_BOTH constexpr int tile_ld(int width) { return width + 4; }
/// Numbers that a tile with `width` columns takes in shared memory.
HEED_BOTH constexpr int tile_size(int width) { return tile_rows * tile_ld(width); }

/// Number of tiles that `rows` rows need.
HEED_BOTH constexpr int64_t tiles_of(int64_t rows) { return ceil_div(rows, tile_rows); }

/// The part of a tile that this thread computes: 8 rows, and a sixteenth of the columns of each.
struct TileThread {
  int x, y;  ///< position of the thread: 0 to 15 along a row, 0 to 7 down the rows
  __device__ TileThread() : x(static_cast<int>(threadIdx.x) % 16), y(static_cast<int>(threadIdx.x) / 16) {}
  /// The r-th of this thread's eight rows.
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

/// values = this thread's C columns of one row; C is 2, 4 or 8, for rows of 16 C numbers.
template <class T, int C>
__device__ inline void columns_of(const TileThread& thread, const T* row, T (&values)[C]) {
  constexpr int pack_size = C < 4 ? C : 4;
#pragma unroll
  for (int n = 0; n < C; n += pack_size) {
    const auto pack = *reinterpret_cast<const Pack<T, pack_size>*>(row + thread.column<C>(n));
#pragma unroll
    for (int e = 0; e < pack_size; ++e) values[n + e] = pack.x[e];
  }
}

/// sum[r][n] += a[row(r), :] . b[key(n), :] over `depth` columns, a multiple of four.
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

/// sum[r][n] += sum over j < count of p[row(r), j] b[j, column(n)]; `count` is a multiple of four.
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

/// sum[r][n] += sum over t < count of a[t, row(r)] b[t, column(n)].
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

/// f(x_0, f(x_1, ...)) of the numbers of the 16 threads of a row, for a commutative f; all of them get it.
template <class T, class F>
__device__ inline T across_row(T x, F f) {
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) x = f(x, __shfl_xor_sync(0xffffffffU, x, distance));
  return x;
}
/// The sum of the numbers of the 16 threads of a row; all of them get it.
template <class T>
__device__ inline T sum_of_row(T x) {
  return across_row(x, [](T a, T b) { return a + b; });
}

/// Starts to copy 64 rows of `width` numbers from device memory into a tile with `tile_width` columns, a
/// multiple of 16 bytes. Zeros fill the columns behind and the rows r where row_at(r) is null. `any_address`
/// is one of device memory.
template <class T, int tile_width, class RowAt>
__device__ inline void fetch_tile(T* tile, int width, const T* any_address, RowAt row_at) {
  constexpr int size = static_cast<int>(sizeof(T)), pack_size = 16 / size, packs = tile_width / pack_size;
  // An aligned address for copies that read nothing.
  const void* const unread =
      reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(any_address) & ~uintptr_t{15});
  for (int p = static_cast<int>(threadIdx.x); p < tile_rows * packs; p += tile_threads) {
    const int r = p / packs, column = p % packs * pack_size;
    const T* row = row_at(r);
    T* target = tile + r * tile_ld(tile_width) + column;
    const int count = row == nullptr ? 0 : min(max(width - column, 0), pack_size);
    if (count == 0) {
      copy_async<16>(target, unread, 0);
    } else if (reinterpret_cast<uintptr_t>(row + column) % 16 == 0) {
      copy_async<16>(target, row + column, count * size);
    } else {
#pragma unroll
      for (int n = 0; n < pack_size; ++n)
        copy_async<size>(target + n, n < count ? row + column + n : unread, n < count ? size : 0);
    }
  }
}

/// fetch_tile() of the first `num_rows` of rows that lie `ld` numbers apart; columns of a wider matrix behind
/// `tile_width` are left out.
template <class T, int tile_width>
__device__ inline void fetch_tile(T* tile, const T* rows, int64_t ld, int64_t num_rows, int64_t width) {
  fetch_tile<T, tile_width>(tile, static_cast<int>(width < tile_width ? width : tile_width), rows,
                            [=](int r) { return r < num_rows ? rows + r * ld : nullptr; });
}

/// dots() of rows of `width` numbers in slices of D columns: fetch_left(c) and fetch_right(c) start to copy
/// the slices that begin at column c into `left` and `right`.
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

/// Writes this thread's part of a map of 64 queries by 64 keys into a tile.
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
__device__ inline void put_columns(const TileThread& thread, const T (&values)[C], int64_t width, T* row) {
  constexpr int pack_size = C < 4 ? C : 4;
  const bool is_aligned = packs<pack_size>(row);
#pragma unroll
  for (int n = 0; n < C; n += pack_size) {
    const int c = thread.column<C>(n);
    if (is_aligned && c + pack_size <= width) {
      Pack<T, pack_size> pack;
#pragma unroll
      for (int e = 0; e < pack_size; ++e) pack.x[e] = values[n + e];
      *reinterpret_cast<Pack<T, pack_size>*>(row + c) = pack;
    } else {
#pragma unroll
      for (int e = 0; e < pack_size; ++e) {
        if (c + e < width) row[c + e] = values[n + e];
      }
    }
  }
}

/// Sets this thread's sums to zero.
template <int C, class T>
__device__ inline void clear(T (&sum)[rows_per_thread][C]) {
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) sum[r][n] = T(0);
  }
}

}  // namespace heed::cuda
