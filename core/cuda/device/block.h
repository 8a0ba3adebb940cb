// Sums and maxima over a warp and over a block, in an order fixed by their size.
#pragma once

#include "heed/core/cuda/device/grid.h"

namespace heed::cuda {

inline constexpr unsigned all_lanes = 0xffffffffU;
inline constexpr int lanes = 32;

/// This thread's index in its block (of any dimensions), its warp, and its lane.
__device__ inline int thread_number() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
__device__ inline int block_size() { return static_cast<int>(blockDim.x * blockDim.y * blockDim.z); }
__device__ inline int warp_number() { return thread_number() / lanes; }
__device__ inline int lane_number() { return thread_number() % lanes; }

/// Reduces the values of the 32 lanes by a commutative f; every lane gets the result.
template <class T, class F>
__device__ T warp_fold(T value, F f) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = f(value, __shfl_xor_sync(all_lanes, value, distance));
  }
  return value;
}
template <class T>
__device__ T warp_sum(T value) {
  return warp_fold(value, [](T a, T b) { return a + b; });
}
/// The maximum by a > b ? a : b, so a NaN may be lost.
template <class T>
__device__ T warp_max(T value) {
  return warp_fold(value, [](T a, T b) { return a > b ? a : b; });
}

/// Reduces the values of all threads of a block of whole warps by a commutative f with the identity
/// `identity`, through `scratch`: shared memory for 32 values, which may be used again at once. Every thread
/// of the block calls it and gets the result.
template <class T, class F>
__device__ T block_fold(T value, T identity, T* scratch, F f) {
  const int warps = block_size() / lanes, lane = lane_number();
  value = warp_fold(value, f);
  if (warps == 1) return value;
  if (lane == 0) scratch[warp_number()] = value;
  __syncthreads();
  value = warp_fold(lane < warps ? scratch[lane] : identity, f);
  __syncthreads();
  return value;
}
template <class T>
__device__ T block_sum(T value, T* scratch) {
  return block_fold(value, T(0), scratch, [](T a, T b) { return a + b; });
}
/// `identity` is below all values, such as -infinity.
template <class T>
__device__ T block_max(T value, T identity, T* scratch) {
  return block_fold(value, identity, scratch, [](T a, T b) { return a > b ? a : b; });
}

}  // namespace heed::cuda
