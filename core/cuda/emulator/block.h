// The threads of a block as fibers: where they are, and where they wait for each other.
//
// A block's threads run one after the other, each straight through to the place where CUDA makes it wait. So
// a value that another thread is to write must come through a barrier or a shuffle; without one it is not
// there yet. HEED_EMULATED_ORDER=backward runs the threads of each block from the last to the first, which
// shows what relies on the order.
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
inline constexpr size_t slot = 64;  ///< most bytes that a lane may hand to the others at once

/// Runs `body` once for each thread of each block; blocks on the threads of the pool. Throws what a thread
/// throws, and for a barrier that some threads do not reach.
void run_grid(dim3 blocks, dim3 threads, size_t shared_bytes, const std::function<void()>& body);

/// The dynamic shared memory of this thread's block, 16-byte aligned, NaN at the start of each block.
void* block_memory();

/// Waits for all threads of the block.
void meet_block();
/// Waits for the lanes of `mask` and returns what each gave, in slots of `slot` bytes; those of other lanes
/// hold NaN. `what` names the op, which must be the same for all. Then leave_warp().
const std::byte* meet_warp(const char* what, unsigned mask, const void* mine, size_t bytes);
void leave_warp();

/// What f makes of the values of all lanes: f(const T& (int lane)). For ops of a whole warp.
template <class T, class F>
auto exchange(const char* what, unsigned mask, const T& mine, F f) {
  static_assert(sizeof(T) <= slot && std::is_trivially_copyable_v<T>);
  const std::byte* all = meet_warp(what, mask, &mine, sizeof(T));
  const auto result = f([all](int lane) {
    T value;
    std::memcpy(&value, all + static_cast<size_t>(lane) * slot, sizeof(T));
    return value;
  });
  leave_warp();
  return result;
}

inline int lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % warp);
}

}  // namespace heed::emulated

inline void __syncthreads() { heed::emulated::meet_block(); }

inline void __syncwarp(unsigned mask = 0xffffffffU) {
  heed::emulated::meet_warp("__syncwarp", mask, nullptr, 0);
  heed::emulated::leave_warp();
}

/// Lanes outside of the segment of `width` keep their own value, as CUDA says.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int first = heed::emulated::lane() / width * width;
  return heed::emulated::exchange("__shfl_sync", mask, value,
                                  [&](auto of) { return of(first + (source & (width - 1))); });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  const int lane = heed::emulated::lane(), from = lane ^ bits;
  // Segments before one's own may be read, later ones not.
  const bool within = from < (lane / width + 1) * width;
  return heed::emulated::exchange("__shfl_xor_sync", mask, value,
                                  [&](auto of) { return of(within ? from : lane); });
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = heed::emulated::lane(), from = lane + static_cast<int>(delta);
  const bool within = from < (lane / width + 1) * width;
  return heed::emulated::exchange("__shfl_down_sync", mask, value,
                                  [&](auto of) { return of(within ? from : lane); });
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = heed::emulated::lane(), from = lane - static_cast<int>(delta);
  const bool within = from >= lane / width * width;
  return heed::emulated::exchange("__shfl_up_sync", mask, value,
                                  [&](auto of) { return of(within ? from : lane); });
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  return heed::emulated::exchange("__ballot_sync", mask, vote, [&](auto of) {
    unsigned votes = 0;
    for (int lane = 0; lane < warpSize; ++lane) {
      if (((mask >> lane) & 1U) != 0 && of(lane) != 0) votes |= 1U << lane;
    }
    return votes;
  });
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0 ? 1 : 0; }
