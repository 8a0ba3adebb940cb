// How threads of a device share rows: a warp handles a short row, a block a long one.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/grid.h"
#include "heed/core/minus_infinity.h"

namespace heed::cuda {

inline constexpr int block = 256;  ///< threads of a block, unless a kernel chooses another number
/// Limit of warps in a grid whose warps each have working memory: as many as run at the same time.
inline constexpr int64_t max_warps = 4224;

/// Index of this thread in its warp, in blocks of one dimension.
__device__ inline int lane() { return static_cast<int>(threadIdx.x % lanes); }
/// Index of this thread's warp in a grid of one dimension.
__device__ inline int64_t grid_warp() {
  return int64_t{blockIdx.x} * (blockDim.x / lanes) + threadIdx.x / lanes;
}
/// Number of warps of a grid of one dimension.
__device__ inline int64_t grid_warps() { return int64_t{gridDim.x} * (blockDim.x / lanes); }

/// A grid with one warp per row.
inline Grid warp_per_row(int64_t rows) {
  return {.blocks = dim3(static_cast<unsigned>(ceil_div(rows, block / lanes))), .threads = dim3(block)};
}
/// A grid with one block per row.
inline Grid block_per_row(int64_t rows, int threads = block) {
  return {.blocks = dim3(static_cast<unsigned>(rows)), .threads = dim3(static_cast<unsigned>(threads))};
}
/// The sum of a[i] b[i] over i < width by a warp; every lane gets it.
template <class T>
__device__ T warp_dot(const T* a, const T* b, int64_t width) {
  T sum = 0;
  for (int64_t i = lane(); i < width; i += lanes) sum += a[i] * b[i];
  return warp_sum(sum);
}

/// Number of lanes before this one whose `flag` is set; `total` receives the number in the whole warp.
__device__ inline int warp_rank(bool flag, int& total) {
  const unsigned votes = __ballot_sync(all_lanes, flag ? 1 : 0);
  total = __popc(votes);
  return __popc(votes & ((1U << lane()) - 1));
}

/// Number of threads before this one whose `flag` is set; `total` receives the number in the whole block.
/// `scratch` is shared memory for 32 numbers. All threads of the block call it.
__device__ inline int block_rank(bool flag, int* scratch, int& total) {
  int warp_total = 0;
  const int rank = warp_rank(flag, warp_total), warp = static_cast<int>(threadIdx.x / lanes);
  __syncthreads();
  if (lane() == 0) scratch[warp] = warp_total;
  __syncthreads();
  int earlier_warps = 0;
  total = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x / lanes); ++w) {
    earlier_warps += w < warp ? scratch[w] : 0;
    total += scratch[w];
  }
  return earlier_warps + rank;
}

}  // namespace heed::cuda
