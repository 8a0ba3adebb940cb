// Sums and maxima over a warp and over a block, in an order fixed by their size.
#pragma once

#include "heed/core/cuda/device/grid.h"

namespace heed::cuda {

inline constexpr unsigned all_lanes = 0xffffffffU;
inline constexpr int lanes = 32;

/// Index of this thread in its block, whose shape may have up to three dimensions.
__device__ inline int thread_number() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
/// Number of threads of a block.
__device__ inline int block_size() { return static_cast<int>(blockDim.x * blockDim.y * blockDim.z); }
/// Index of this thread's warp in its block.
__device__ inline int warp_number() { return thread_number() / lanes; }
/// Index of this thread in its warp, in a block of any shape; lane() of row_threads.h needs one dimension.
__device__ inline int lane_number() { return thread_number() % lanes; }

/// f(x_0, f(x_1, ...)) of the values of the 32 lanes, for a commutative f; every lane gets the result.
template <class T, class F>
__device__ T warp_fold(T value, F f) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = f(value, __shfl_xor_sync(all_lanes, value, distance));
  }
  return value;
}
/// The sum of the values of the 32 lanes; every lane gets it.
template <class T>
__device__ T warp_sum(T value) {
  return warp_fold(value, [](T a, T b) { return a + b; });
}
/// The maximum of the values of the 32 lanes by a > b ? a : b, so a NaN may be lost.
template <class T>
__device__ T warp_max(T value) {
  return warp_fold(value, [](T a, T b) { return a > b ? a : b; });
}

/// f(x_0, f(x_1, ...)) of the values of all threads of a block of whole warps, for a commutative f.
/// `identity` is a value with f(identity, x) = x; `scratch` is shared memory for 32 values, free again at the
/// return. Every thread of the block calls it and gets the result.
template <class T, class F>
__device__ T block_fold(T value, T identity, T* scratch, F f) {
  const int num_warps = block_size() / lanes, lane = lane_number();
  value = warp_fold(value, f);
  if (num_warps == 1) return value;
  if (lane == 0) scratch[warp_number()] = value;
  __syncthreads();
  value = warp_fold(lane < num_warps ? scratch[lane] : identity, f);
  __syncthreads();
  return value;
}
/// The sum of the values of all threads of the block; see block_fold().
template <class T>
__device__ T block_sum(T value, T* scratch) {
  return block_fold(value, T(0), scratch, [](T a, T b) { return a + b; });
}
/// The maximum of the values of all threads of the block; `identity` is below all of them, such as -infinity.
template <class T>
__device__ T block_max(T value, T identity, T* scratch) {
  return block_fold(value, identity, scratch, [](T a, T b) { return a > b ? a : b; });
}

}  // namespace heed::cuda
