// Adds many rows into the rows of a table, in a fixed order and without atomics.
#pragma once

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/tensor.h"

namespace heed::cuda {

/// The rows to add, sorted by their target and split into pieces of 32. A warp adds one piece of 32 columns;
/// sums of a target that spans pieces are joined in a second pass.
struct Runs {
  static constexpr int64_t piece = 32;

  const int32_t* order;  ///< [lists / sharing, n]: the rows of a list in order of their ids
  int64_t lists, sharing, n, width;

  __host__ __device__ int64_t pieces() const { return ceil_div(n, piece); }
  __host__ __device__ int64_t chunks() const { return ceil_div(width, lanes); }
  __device__ int32_t which(int64_t list, int64_t place) const { return order[list / sharing * n + place]; }
};

/// Adds the rows of one piece. `From` has
///   int32_t id(list, which): where row `which` of the list goes; nowhere if negative, and those come last
///   T at(list, which, column): its numbers
///   T* to(list, id): the row of the table
template <class T, class From>
__global__ void __launch_bounds__(block) add_pieces(From from, Runs runs, T* parts) {
  const int64_t warp = grid_warp(), chunk = warp % runs.chunks(),
                piece = warp / runs.chunks() % runs.pieces(), list = warp / runs.chunks() / runs.pieces();
  if (list >= runs.lists) return;
  const int64_t begin = piece * Runs::piece, end = std::min(begin + Runs::piece, runs.n),
                column = chunk * lanes + lane();
  const bool inside = column < runs.width;
  const auto id_at = [&](int64_t place) {
    return place < 0 || place >= runs.n ? -1 : from.id(list, runs.which(list, place));
  };
  const int32_t id = begin + lane() < end ? id_at(begin + lane()) : -1;
  const int32_t which = begin + lane() < end ? runs.which(list, begin + lane()) : 0;
  const int32_t before = id_at(begin - 1), after = id_at(end);
  const int count = static_cast<int>(end - begin);
  T sum = 0;
  bool whole = false;  // does the run begin in this piece?
  for (int k = 0; k < count; ++k) {
    const int32_t own = __shfl_sync(all_lanes, id, k), row = __shfl_sync(all_lanes, which, k);
    const int32_t last = __shfl_sync(all_lanes, id, k > 0 ? k - 1 : 0),
                  next = __shfl_sync(all_lanes, id, k + 1 < count ? k + 1 : k);
    if (own < 0) return;
    const T value = inside ? from.at(list, row, column) : T(0);
    if (k == 0 || last != own) {
      sum = value;
      whole = k > 0 || before != own;
    } else {
      sum += value;
    }
    if (k + 1 < count ? next == own : false) continue;
    const bool ends = k + 1 < count || after != own;
    if (!inside) continue;
    if (whole && ends)
      from.to(list, own)[column] += sum;
    else
      parts[((list * runs.pieces() + piece) * 2 + (whole ? 1 : 0)) * runs.width + column] = sum;
  }
}

/// Length of the true prefix of a monotone predicate on [0, most). A warp calls it and tests 32 places at a
/// time.
template <class F>
__device__ int64_t warp_reach(int64_t most, F holds) {
  int64_t low = 0, high = most;  // it holds for all before low, and for no more than high
  while (low < high) {
    const int64_t step = ceil_div(high - low, lanes), at = low + (lane() + 1) * step - 1;
    const bool so = at < high && holds(at);
    low += step * __popc(__ballot_sync(all_lanes, so ? 1 : 0));
    high = std::min(high, low + step - 1);
  }
  return low;
}

/// Joins the sums of a run's pieces, by the warp of the piece where the run begins. It finds the end first,
/// so that it can read many sums at a time although it adds them one by one.
template <class T, class From>
__global__ void __launch_bounds__(block) join_pieces(From from, Runs runs, const T* parts) {
  const int64_t warp = grid_warp(), chunk = warp % runs.chunks(),
                piece = warp / runs.chunks() % runs.pieces(), list = warp / runs.chunks() / runs.pieces(),
                column = chunk * lanes + lane();
  if (list >= runs.lists) return;
  const int64_t begin = piece * Runs::piece, end = begin + Runs::piece;
  if (end >= runs.n) return;
  const auto id_at = [&](int64_t place) { return from.id(list, runs.which(list, place)); };
  const int32_t id = id_at(end - 1);
  if (id < 0 || id_at(end) != id) return;                                 // ends here
  if (begin > 0 && id_at(begin) == id && id_at(begin - 1) == id) return;  // began before
  const int64_t more = warp_reach(runs.pieces() - piece - 1,
                                  [&](int64_t next) { return id_at(end + next * Runs::piece) == id; });
  if (column >= runs.width) return;
  // From the last run of this piece to the first of each that follows.
  const T* part = parts + ((list * runs.pieces() + piece) * 2 + 1) * runs.width + column;
  T sum = *part;
  part += runs.width;
  constexpr int at_once = 16;
  for (int64_t done = 0; done < more; done += at_once) {
    T some[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) some[k] = done + k < more ? part[(done + k) * 2 * runs.width] : T(0);
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      if (done + k < more) sum += some[k];
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
