// Copies from device memory into shared memory that go on while the block computes.
#pragma once

#include <cstdint>

#include "heed/core/cuda/device/grid.h"
#ifndef __CUDACC__
#include "heed/core/cuda/emulator/async_copies.h"
#endif

namespace heed::cuda {

/// Copies `size` bytes (4, 8 or 16, to which both addresses are aligned) without waiting: the first `bytes`
/// of them come from `from`, the rest are zero. With bytes = 0 nothing is read.
template <int size>
__device__ inline void copy_async(void* to, const void* from, int bytes) {
#ifdef __CUDACC__
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (size == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(size), "r"(bytes)
                 : "memory");
  }
#else
  emulated::Copies::mine().begin(to, from, size, bytes);
#endif
}

/// Closes the group of copies that this thread has begun since the last one.
__device__ inline void commit_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  emulated::Copies::mine().commit();
#endif
}

/// Waits until at most `open` of this thread's groups, the youngest, are under way. The others see what was
/// copied after a barrier.
template <int open>
__device__ inline void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory");
#else
  emulated::Copies::mine().wait(open);
#endif
}

}  // namespace heed::cuda
