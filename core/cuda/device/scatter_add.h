// Adds many rows into the rows of a table, in a fixed order and without atomics.
#pragma once

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/tensor.h"

namespace heed::cuda {

/// The rows to add, sorted by their target and split into pieces of 32. A warp adds one piece of 32 columns;
/// the sums of a target that spans pieces are added in a second pass.
struct Runs {
  static constexpr int64_t piece = 32;

  const int32_t* order;  ///< [lists / sharing, n]: the rows of a list in order of their ids
  int64_t lists, sharing, n, width;

  __host__ __device__ int64_t pieces() const { return ceil_div(n, piece); }
  __host__ __device__ int64_t chunks() const { return ceil_div(width, lanes); }
  __device__ int32_t row_at(int64_t list, int64_t place) const { return order[list / sharing * n + place]; }
};

/// Adds the rows of one piece. `From` has
///   int32_t id(list, row): the target of a row of the list; negative: none, and such rows come last
///   T at(list, row, column): a number of the row
///   T* to(list, id): row `id` of the table
template <class T, class From>
__global__ void __launch_bounds__(block) add_pieces(From from, Runs runs, T* parts) {
  const int64_t warp = grid_warp(), chunk = warp % runs.chunks(),
                piece = warp / runs.chunks() % runs.pieces(), list = warp / runs.chunks() / runs.pieces();
  if (list >= runs.lists) return;
  const int64_t begin = piece * Runs::piece, end = std::min(begin + Runs::piece, runs.n),
                column = chunk * lanes + lane();
  const bool inside = column < runs.width;
  const auto id_at = [&](int64_t place) {
    return place < 0 || place >= runs.n ? -1 : from.id(list, runs.row_at(list, place));
  };
  const int32_t id = begin + lane() < end ? id_at(begin + lane()) : -1;
  const int32_t row = begin + lane() < end ? runs.row_at(list, begin + lane()) : 0;
  const int32_t before = id_at(begin - 1), after = id_at(end);
  const int count = static_cast<int>(end - begin);
  T sum = 0;
  bool begins = false;  // whether the run of equal targets begins in this piece
  for (int k = 0; k < count; ++k) {
    const int32_t own = __shfl_sync(all_lanes, id, k), own_row = __shfl_sync(all_lanes, row, k);
    const int32_t last = __shfl_sync(all_lanes, id, k > 0 ? k - 1 : 0),
                  next = __shfl_sync(all_lanes, id, k + 1 < count ? k + 1 : k);
    if (own < 0) return;
    const T value = inside ? from.at(list, own_row, column) : T(0);
    if (k == 0 || last != own) {
      sum = value;
      begins = k > 0 || before != own;
    } else {
      sum += value;
    }
    if (k + 1 < count ? next == own : false) continue;
    const bool ends = k + 1 < count || after != own;
    if (!inside) continue;
    if (begins && ends)
      from.to(list, own)[column] += sum;
    else
      parts[((list * runs.pieces() + piece) * 2 + (begins ? 1 : 0)) * runs.width + column] = sum;
  }
}

/// Length of the true prefix of a monotone predicate on [0, size), by a warp: a 32-ary search.
template <class F>
__device__ int64_t warp_true_prefix(int64_t size, F predicate) {
  int64_t low = 0, high = size;  // the length is in [low, high]
  while (low < high) {
    const int64_t step = ceil_div(high - low, lanes), at = low + (lane() + 1) * step - 1;
    const bool is_true = at < high && predicate(at);
    low += step * __popc(__ballot_sync(all_lanes, is_true ? 1 : 0));
    high = std::min(high, low + step - 1);
  }
  return low;
}

/// Adds the partial sums of a run that spans several pieces, in order, by the warp of the piece where the run
/// begins. The warp finds the last piece first, so that it can read 16 partial sums at a time.
template <class T, class From>
__global__ void __launch_bounds__(block) join_pieces(From from, Runs runs, const T* parts) {
  const int64_t warp = grid_warp(), chunk = warp % runs.chunks(),
                piece = warp / runs.chunks() % runs.pieces(), list = warp / runs.chunks() / runs.pieces(),
                column = chunk * lanes + lane();
  if (list >= runs.lists) return;
  const int64_t begin = piece * Runs::piece, end = begin + Runs::piece;
  if (end >= runs.n) return;
  const auto id_at = [&](int64_t place) { return from.id(list, runs.row_at(list, place)); };
  const int32_t id = id_at(end - 1);
  if (id < 0 || id_at(end) != id) return;                                 // the run ends here
  if (begin > 0 && id_at(begin) == id && id_at(begin - 1) == id) return;  // the run began in an earlier piece
  const int64_t more = warp_true_prefix(runs.pieces() - piece - 1,
                                        [&](int64_t next) { return id_at(end + next * Runs::piece) == id; });
  if (column >= runs.width) return;
  // The partial sum of the last run of this piece, and those of the first runs of the pieces that follow.
  const T* part = parts + ((list * runs.pieces() + piece) * 2 + 1) * runs.width + column;
  T sum = *part;
  part += runs.width;
  constexpr int at_once = 16;
  for (int64_t done = 0; done < more; done += at_once) {
    T loaded[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) loaded[k] = done + k < more ? part[(done + k) * 2 * runs.width] : T(0);
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      if (done + k < more) sum += loaded[k];
    }
  }
  from.to(list, id)[column] += sum;
}

/// Adds all rows of all lists to the table.
template <class T, class From>
void add_runs(const From& from, const Runs& runs) {
  if (runs.lists == 0 || runs.n == 0 || runs.width == 0) return;
  const Tensor parts(Shape{runs.lists, runs.pieces(), 2, runs.width}, dtype_of<T>, Device::cuda);
  const Grid grid = warps(runs.lists * runs.pieces() * runs.chunks());
  run(add_pieces<T, From>, grid, from, runs, parts.data<T>());
  if (runs.pieces() > 1) run(join_pieces<T, From>, grid, from, runs, static_cast<const T*>(parts.data<T>()));
}

}  // namespace heed::cuda
