// The CUDA stream of a thread, and checks of calls of the CUDA runtime.
#pragma once

#include <cuda_runtime.h>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/scope.h"

namespace heed::cuda {

/// The stream on which this thread queues kernels and copies. Opens the device when first called;
/// Fault::device where there is none.
cudaStream_t stream();

/// While one lives, stream() of this thread is `stream`.
class OnStream {
 public:
  explicit OnStream(cudaStream_t stream);

 private:
  ScopedValue<cudaStream_t> stream_;
};

/// Throws Fault::device (Fault::memory where memory ran out) unless `status` is success; `what` says what was
/// tried.
void check(cudaError_t status, const char* what);

}  // namespace heed::cuda
