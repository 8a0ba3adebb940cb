// Starting kernels. Included by every *_cuda.cu, and by no header that others see.
#pragma once

#include <cstdint>

#include "core/cuda/context.h"
#include "core/cuda/stream.h"

namespace heed::cuda {

/// Blocks, threads a block, and the dynamic shared memory of a block in bytes.
struct Grid {
  dim3 blocks;
  dim3 threads;
  int shared_bytes = 0;
};

/// Ceiling division.
inline constexpr int64_t pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

/// Starts the kernel on stream(). A grid without blocks or threads does nothing. Shared memory past the 48
/// KiB that every kernel may have is asked for.
template <class... Parameters, class... Args>
void run(void (*kernel)(Parameters...), const Grid& grid, Args... args) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0 || grid.threads.x == 0 ||
      grid.threads.y == 0 || grid.threads.z == 0) {
    return;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared_bytes);
  config.stream = stream();
  // Some kernels have a little that is not dynamic.
  constexpr int always_there = 47 * 1024;
  if (grid.shared_bytes > always_there &&
      raises_limit(reinterpret_cast<const void*>(kernel), grid.shared_bytes)) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared_bytes),
          "shared memory of a kernel");
  }
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(args)...), "starting a kernel");
  count_launches(1);
}

/// Blocks of `threads` for n things of which a thread may do several: enough to fill any device of today, for
/// kernels that step by the whole grid.
inline Grid line(int64_t n, int threads = 256, int64_t most_blocks = 4096) {
  const int64_t blocks = pieces(n, threads);
  return {dim3(static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks)),
          dim3(static_cast<unsigned>(threads))};
}

/// This thread's place in a grid of one dimension, and how many threads that has: i = here(); i += whole().
__device__ inline int64_t here() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t whole() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// The block's dynamic shared memory, 16-byte aligned.
template <class T>
__device__ T* shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char heed_block_memory[];
  return reinterpret_cast<T*>(heed_block_memory);
#else
  return static_cast<T*>(heed::acted::block_memory());
#endif
}

}  // namespace heed::cuda
