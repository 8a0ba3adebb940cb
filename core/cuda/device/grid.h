// Kernel launches. Included by *_cuda.cu files and device headers only.
#pragma once

#include <cstdint>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/runtime/context.h"
#include "heed/core/cuda/runtime/stream.h"
#include "heed/core/tensor.h"

namespace heed::cuda {

/// Launch configuration of a kernel: blocks, threads per block, and bytes of dynamic shared memory per block.
struct Grid {
  dim3 blocks;
  dim3 threads;
  int shared_bytes = 0;
};

/// Pointer to the elements of x; null where x is empty.
template <class T>
T* pointer(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

/// Launches the kernel on stream(); does nothing where the grid has no blocks or threads. Raises the kernel's
/// limit of shared memory where it needs more than the default of 48 KiB.
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
  constexpr int default_limit = 47 * 1024;  // leaves 1 KiB for static shared memory
  if (grid.shared_bytes > default_limit &&
      needs_higher_limit(reinterpret_cast<const void*>(kernel), grid.shared_bytes)) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared_bytes),
          "shared memory of a kernel");
  }
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(args)...), "starting a kernel");
  count_launches(1);
}

/// A one-dimensional grid for n items, for kernels that loop in steps of the grid. 4096 blocks fill any
/// current device.
inline Grid grid_over(int64_t n, int threads = 256, int64_t max_blocks = 4096) {
  const int64_t blocks = ceil_div(n, threads);
  return {dim3(static_cast<unsigned>(blocks < max_blocks ? blocks : max_blocks)),
          dim3(static_cast<unsigned>(threads))};
}

/// The index of this thread in a one-dimensional grid. A loop over n items whose grid may be smaller runs
/// for (i = global_thread(); i < n; i += grid_size()).
__device__ inline int64_t global_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
/// The number of threads of a one-dimensional grid.
__device__ inline int64_t grid_size() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// The block's dynamic shared memory, 16-byte aligned.
template <class T>
__device__ T* shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char heed_block_memory[];
  return reinterpret_cast<T*>(heed_block_memory);
#else
  return static_cast<T*>(heed::emulated::block_memory());
#endif
}

}  // namespace heed::cuda
