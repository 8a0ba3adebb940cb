// Asynchronous copies from device memory into shared memory.
#pragma once

#include <cstdint>

#include "heed/core/cuda/device/grid.h"
#ifndef __CUDACC__
#include "heed/core/cuda/emulator/async_copies.h"
#endif

namespace heed::cuda {

/// Starts to copy `bytes` bytes from device memory to shared memory and to fill up to `size` with zeros.
/// `size` is 4, 8 or 16, and both addresses are multiples of it. With bytes = 0 nothing is read.
template <int size>
__device__ inline void copy_async(void* to, const void* from, int bytes) {
#ifdef __CUDACC__
  const auto shared_address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (size == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address), "l"(from), "n"(size),
                 "r"(bytes)
                 : "memory");
  }
#else
  emulated::Copies::of_thread().begin(to, from, size, bytes);
#endif
}

/// Makes the copies that this thread has started since the last call one group (cp.async.commit_group).
__device__ inline void commit_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  emulated::Copies::of_thread().commit();
#endif
}

/// Waits until at most the `pending` newest groups of this thread are incomplete. Other threads see the
/// copied numbers after a barrier.
template <int pending>
__device__ inline void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#else
  emulated::Copies::of_thread().wait(pending);
#endif
}

}  // namespace heed::cuda
