// Allocates device memory for the caching allocator, and checks guard bytes on an emulated device.
#include "heed/core/cuda/runtime/memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "heed/core/cuda/runtime/stream.h"

namespace heed::cuda {
namespace {

constexpr unsigned char nan_byte = 0xff;  // fills memory with NaN of every float type
constexpr unsigned char guard_byte = 0xa5;

/// Calls a function that CUDA refuses while a stream is captured, in the relaxed capture mode: allocations
/// are not part of the captured work.
template <class Call>
cudaError_t call_outside_capture(const Call& call) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const cudaError_t status = call();
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (status != cudaSuccess) cudaGetLastError();  // so that no later call reports it
  return status;
}

char* map(char*, int64_t bytes) {
  stream();  // opens the device
  void* memory = nullptr;
  const cudaError_t status =
      call_outside_capture([&] { return cudaMalloc(&memory, static_cast<size_t>(bytes)); });
  if (status == cudaErrorMemoryAllocation) return nullptr;
  check(status, "taking memory");  // may report the error of an earlier kernel
  return static_cast<char*>(memory);
}

bool unmap(char* memory, int64_t) {
  return call_outside_capture([&] { return cudaFree(memory); }) == cudaSuccess;
}

}  // namespace

const MemorySource& memory_source() {
  static const MemorySource source{map, unmap, int64_t{32} << 20, false};
  return source;
}

int64_t free_bytes() {
  stream();  // opens the device
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "asking the device what memory it has left");
  return static_cast<int64_t>(available);
}

#if defined(HEED_CUDA_EMULATED) && HEED_CUDA_EMULATED

// Both are queued on the stream, behind kernels that still use the memory.

void prepare(void* data, int64_t bytes, int64_t room) {
  heed::emulated::enqueue_beside(stream(), [=] {
    const heed::emulated::Open open;
    std::memset(data, nan_byte, static_cast<size_t>(bytes));
    std::memset(static_cast<char*>(data) + bytes, guard_byte, static_cast<size_t>(room - bytes));
  });
}

void examine(const void* data, int64_t bytes, int64_t room) {
  heed::emulated::enqueue_beside(stream(), [=] {
    const heed::emulated::Open open;
    const auto* tail = static_cast<const unsigned char*>(data);
    if (std::all_of(tail + bytes, tail + room, [](unsigned char byte) { return byte == guard_byte; })) return;
    // No caller would catch an exception of a stream.
    std::fprintf(stderr, "heed: emulated device: a kernel has written behind a tensor of %lld bytes\n",
                 static_cast<long long>(bytes));
    std::abort();
  });
}

#else

void prepare(void*, int64_t, int64_t) {}
void examine(const void*, int64_t, int64_t) {}

#endif

}  // namespace heed::cuda
