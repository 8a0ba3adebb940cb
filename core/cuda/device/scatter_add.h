// Adds many rows into the rows of a table, in a fixed order and without atomics.
#pragma once

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/tensor.h"

namespace heed::cuda {

/// The rows to add, in `lists` lists of n rows each. A list is sorted by target row, then cut into pieces of
/// 32 rows; a warp adds 32 columns of one piece. Targets whose rows span pieces get their sums in a second
/// pass.
struct SortedRows {
  static constexpr int64_t piece_rows = 32;

  const int32_t* order;  ///< [lists / sharing, n]: indices of the rows of a list, sorted by target
  int64_t lists, sharing, n, width;  ///< `sharing` neighbouring lists have one order

  __host__ __device__ int64_t pieces() const { return ceil_div(n, piece_rows); }
  __host__ __device__ int64_t column_chunks() const { return ceil_div(width, lanes); }
  __device__ int32_t row_at(int64_t list, int64_t position) const {
    return order[list / sharing * n + position];
  }
  /// Index of a row of partial sums [lists, pieces, 2, width]. Slot 0 is for the target whose rows begin in
  /// an earlier piece, slot 1 for the one whose rows go on in the next.
  __device__ int64_t partial_row(int64_t list, int64_t piece, int slot) const {
    return (list * pieces() + piece) * 2 + slot;
  }
};

/// The list, the piece and the column of this thread; warps are (list, piece, chunk of 32 columns).
struct ScatterThread {
  int64_t list, piece, column;
  __device__ explicit ScatterThread(const SortedRows& rows) {
    const int64_t warp = grid_warp(), chunks = rows.column_chunks();
    list = warp / chunks / rows.pieces();
    piece = warp / chunks % rows.pieces();
    column = warp % chunks * lanes + lane();
  }
};

/// For the rows r of one piece: table[target(r), :] += r[:], where all rows of the target lie in the piece;
/// else the sum goes to partial_sums [lists, pieces, 2, width]. Source has
///   int32_t id(list, row)     target of a row of the list; negative: none, and such rows come last
///   T at(list, row, column)   a number of the row
///   T* to(list, id)           row `id` of the table
template <class T, class Source>
__global__ void __launch_bounds__(block) add_pieces(Source source, SortedRows rows, T* partial_sums) {
  const ScatterThread thread(rows);
  const int64_t list = thread.list;
  if (list >= rows.lists) return;
  const int64_t begin = thread.piece * SortedRows::piece_rows,
                end = std::min(begin + SortedRows::piece_rows, rows.n);
  const bool has_column = thread.column < rows.width;
  const auto target_at = [&](int64_t position) {
    return position < 0 || position >= rows.n ? -1 : source.id(list, rows.row_at(list, position));
  };
  // Lane k loads target and index of row k of the piece; shuffles hand them to all lanes.
  const int32_t lane_target = begin + lane() < end ? target_at(begin + lane()) : -1;
  const int32_t lane_row = begin + lane() < end ? rows.row_at(list, begin + lane()) : 0;
  const int32_t target_before = target_at(begin - 1), target_after = target_at(end);
  const int count = static_cast<int>(end - begin);
  T sum = 0;
  bool begins_here = false;  // the first row of the target lies in this piece
  for (int k = 0; k < count; ++k) {
    const int32_t target = __shfl_sync(all_lanes, lane_target, k), row = __shfl_sync(all_lanes, lane_row, k);
    const int32_t previous = __shfl_sync(all_lanes, lane_target, k > 0 ? k - 1 : 0),
                  next = __shfl_sync(all_lanes, lane_target, k + 1 < count ? k + 1 : k);
    if (target < 0) return;
    const T value = has_column ? source.at(list, row, thread.column) : T(0);
    if (k == 0 || previous != target) {
      sum = value;
      begins_here = k > 0 || target_before != target;
    } else {
      sum += value;
    }
    if (k + 1 < count && next == target) continue;
    const bool ends_here = k + 1 < count || target_after != target;
    if (!has_column) continue;
    if (begins_here && ends_here)
      source.to(list, target)[thread.column] += sum;
    else
      partial_sums[rows.partial_row(list, thread.piece, begins_here ? 1 : 0) * rows.width + thread.column] =
          sum;
  }
}

/// Length of the true prefix of a monotone predicate on [0, size), by a warp: a 32-ary search.
template <class F>
__device__ int64_t warp_true_prefix(int64_t size, F predicate) {
  int64_t low = 0, high = size;  // the length is in [low, high]
  while (low < high) {
    const int64_t step = ceil_div(high - low, lanes), probe = low + (lane() + 1) * step - 1;
    const bool is_true = probe < high && predicate(probe);
    low += step * __popc(__ballot_sync(all_lanes, is_true ? 1 : 0));
    high = std::min(high, low + step - 1);
  }
  return low;
}

/// table[target, :] += the partial sums of a target whose rows span several pieces, in order, by the warp of
/// the piece where they begin. The warp finds the last of these pieces first, so that it can load 16 partial
/// sums at a time.
template <class T, class Source>
__global__ void __launch_bounds__(block) join_pieces(Source source, SortedRows rows, const T* partial_sums) {
  const ScatterThread thread(rows);
  const int64_t list = thread.list;
  if (list >= rows.lists) return;
  const int64_t begin = thread.piece * SortedRows::piece_rows, end = begin + SortedRows::piece_rows;
  if (end >= rows.n) return;
  const auto target_at = [&](int64_t position) { return source.id(list, rows.row_at(list, position)); };
  const int32_t target = target_at(end - 1);
  if (target < 0 || target_at(end) != target) return;  // its rows end here
  const bool begins_earlier = begin > 0 && target_at(begin) == target && target_at(begin - 1) == target;
  if (begins_earlier) return;
  const int64_t later_pieces = warp_true_prefix(rows.pieces() - thread.piece - 1, [&](int64_t next) {
    return target_at(end + next * SortedRows::piece_rows) == target;
  });
  if (thread.column >= rows.width) return;
  T sum = partial_sums[rows.partial_row(list, thread.piece, 1) * rows.width + thread.column];
  const T* later_sum =
      partial_sums + rows.partial_row(list, thread.piece + 1, 0) * rows.width + thread.column;
  constexpr int loads = 16;
  for (int64_t p = 0; p < later_pieces; p += loads) {
    T loaded[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k)
      loaded[k] = p + k < later_pieces ? later_sum[(p + k) * 2 * rows.width] : T(0);
#pragma unroll
    for (int k = 0; k < loads; ++k) {
      if (p + k < later_pieces) sum += loaded[k];
    }
  }
  source.to(list, target)[thread.column] += sum;
}

/// table[target(r), :] += r[:] for all rows r of all lists, in the order of each list.
template <class T, class Source>
void add_sorted_rows(const Source& source, const SortedRows& rows) {
  if (rows.lists == 0 || rows.n == 0 || rows.width == 0) return;
  const Tensor partial_sums(Shape{rows.lists, rows.pieces(), 2, rows.width}, dtype_of<T>, Device::cuda);
  const Grid grid = warp_per_row(rows.lists * rows.pieces() * rows.column_chunks());
  run(add_pieces<T, Source>, grid, source, rows, partial_sums.data<T>());
  if (rows.pieces() > 1)
    run(join_pieces<T, Source>, grid, source, rows, static_cast<const T*>(partial_sums.data<T>()));
}

}  // namespace heed::cuda
