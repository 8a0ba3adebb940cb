// The threads of a block as fibers: their indices, barriers and shuffles. They run one after the other, each
// up to its next barrier or shuffle, so a kernel without the barrier that it needs reads old values.
// HEED_EMULATED_ORDER=backward runs the threads of each block from the last to the first, which shows code
// that relies on the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "heed/core/cuda/emulator/cuda_keywords.h"

inline thread_local constinit uint3 threadIdx{}, blockIdx{};
inline thread_local constinit dim3 blockDim{}, gridDim{};
inline constexpr int warpSize = 32;

namespace heed::emulated {

inline constexpr int warp = 32;
inline constexpr size_t slot = 64;  ///< maximum bytes of a value that lanes exchange

/// Runs `body` once for each thread of each block, with blocks on the threads of the pool. Throws what a
/// thread throws; fails where some threads do not reach a barrier.
void run_grid(dim3 blocks, dim3 threads, size_t shared_bytes, const std::function<void()>& body);

/// The dynamic shared memory of this thread's block, aligned to 16 bytes and filled with NaN for each block.
void* block_memory();

/// Waits for all threads of the block.
void wait_for_block();
/// Waits for the lanes of `mask` and returns the value of each, in slots of `slot` bytes; slots of other
/// lanes hold NaN. `op` is the function that the kernel calls: one for all lanes. The caller then calls
/// leave_warp().
const std::byte* wait_for_warp(const char* op, unsigned mask, const void* value, size_t bytes);
/// Ends the use of the values that wait_for_warp() returned.
void leave_warp();

/// Exchanges values among the lanes of a mask: returns f(value_of), where value_of(lane) is that of a lane.
template <class T, class F>
auto exchange(const char* op, unsigned mask, const T& value, F f) {
  static_assert(sizeof(T) <= slot && std::is_trivially_copyable_v<T>);
  const std::byte* values = wait_for_warp(op, mask, &value, sizeof(T));
  const auto result = f([values](int lane) {
    T value_of_lane;
    std::memcpy(&value_of_lane, values + static_cast<size_t>(lane) * slot, sizeof(T));
    return value_of_lane;
  });
  leave_warp();
  return result;
}

inline int lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % warp);
}

/// The value of lane `source`; a lane's own value where `source` is negative, as CUDA does for sources
/// outside of the lane's segment.
template <class T>
T shuffle(const char* op, unsigned mask, T value, int source) {
  return exchange(op, mask, value, [&](auto value_of) { return value_of(source < 0 ? lane() : source); });
}

}  // namespace heed::emulated

inline void __syncthreads() { heed::emulated::wait_for_block(); }

inline void __syncwarp(unsigned mask = 0xffffffffU) {
  heed::emulated::wait_for_warp("__syncwarp", mask, nullptr, 0);
  heed::emulated::leave_warp();
}

// Shuffles within segments of `width` lanes.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int segment = heed::emulated::lane() / width * width;
  return heed::emulated::shuffle("__shfl_sync", mask, value, segment + (source & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  const int lane = heed::emulated::lane(), source = lane ^ bits;
  // CUDA lets a lane read earlier segments, but not later ones.
  const bool is_readable = source < (lane / width + 1) * width;
  return heed::emulated::shuffle("__shfl_xor_sync", mask, value, is_readable ? source : -1);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = heed::emulated::lane(), source = lane + static_cast<int>(delta);
  const bool is_readable = source < (lane / width + 1) * width;
  return heed::emulated::shuffle("__shfl_down_sync", mask, value, is_readable ? source : -1);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = heed::emulated::lane(), source = lane - static_cast<int>(delta);
  const bool is_readable = source >= lane / width * width;
  return heed::emulated::shuffle("__shfl_up_sync", mask, value, is_readable ? source : -1);
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  return heed::emulated::exchange("__ballot_sync", mask, vote, [&](auto vote_of) {
    unsigned votes = 0;
    for (int lane = 0; lane < warpSize; ++lane) {
      if (((mask >> lane) & 1U) != 0 && vote_of(lane) != 0) votes |= 1U << lane;
    }
    return votes;
  });
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0 ? 1 : 0; }
