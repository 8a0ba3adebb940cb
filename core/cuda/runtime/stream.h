// Where work is queued, for what calls the runtime of CUDA from the host.
#pragma once

#include <cuda_runtime.h>

#include "heed/core/cuda/runtime/context.h"

namespace heed::cuda {

/// Where this thread's work is queued. Opens the device when first called; Fault::device when there is none.
cudaStream_t stream();

/// Queues this thread's work on another stream while one lives.
class OnStream {
 public:
  explicit OnStream(cudaStream_t stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  cudaStream_t outer_;
};

/// Throws Fault::device (Fault::memory where memory ran out) unless all is well; `what` says what was tried.
void check(cudaError_t status, const char* what);

}  // namespace heed::cuda
