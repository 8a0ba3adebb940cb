// Memory of the device in large pieces, and what watches over an emulated one.
#include "heed/core/cuda/runtime/memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "heed/core/cuda/runtime/stream.h"

namespace heed::cuda {
namespace {

constexpr unsigned char unwritten = 0xff, guard = 0xa5;  // bytes; the first make NaN of every float type

/// Does it while a step is recorded, too: memory is not part of what is recorded.
template <class Call>
cudaError_t beside(const Call& call) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const cudaError_t status = call();
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (status != cudaSuccess) cudaGetLastError();  // so that no later call reports it
  return status;
}

char* map(char*, int64_t bytes) {
  stream();  // opens the device
  void* at = nullptr;
  const cudaError_t status = beside([&] { return cudaMalloc(&at, static_cast<size_t>(bytes)); });
  if (status == cudaErrorMemoryAllocation) return nullptr;
  check(status, "taking memory");  // what an earlier kernel did wrong may come out here
  return static_cast<char*>(at);
}

bool unmap(char* at, int64_t) {
  return beside([&] { return cudaFree(at); }) == cudaSuccess;
}

}  // namespace

const MemorySource& memory_source() {
  static const MemorySource device{map, unmap, int64_t{32} << 20, false};
  return device;
}

int64_t free_bytes() {
  stream();  // opens the device
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "asking the device what memory it has left");
  return static_cast<int64_t>(available);
}

#if defined(HEED_CUDA_EMULATED) && HEED_CUDA_EMULATED

// Both in the order of the stream: what it has still to do with the memory comes first.

void prepare(void* data, int64_t bytes, int64_t room) {
  heed::emulated::enqueue_beside(stream(), [=] {
    const heed::emulated::Open open;
    std::memset(data, unwritten, static_cast<size_t>(bytes));
    std::memset(static_cast<char*>(data) + bytes, guard, static_cast<size_t>(room - bytes));
  });
}

void examine(const void* data, int64_t bytes, int64_t room) {
  heed::emulated::enqueue_beside(stream(), [=] {
    const heed::emulated::Open open;
    const auto* tail = static_cast<const unsigned char*>(data);
    if (std::all_of(tail + bytes, tail + room, [](unsigned char byte) { return byte == guard; })) return;
    // Nobody catches what a stream throws.
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
