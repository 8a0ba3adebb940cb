// Copies batches to the device through pinned memory, on a stream of their own.
#include "heed/core/cuda/runtime/pinned_staging.h"

#include <algorithm>
#include <bit>

#include "heed/core/cuda/runtime/stream.h"
#include "heed/core/scope.h"

namespace heed::cuda {
namespace {

/// The stream of all copies to the device.
cudaStream_t copy_stream() {
  static const cudaStream_t shared = [] {
    stream();  // opens the device
    cudaStream_t created = nullptr;
    check(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking), "making a stream for copies");
    return created;
  }();
  return shared;
}

/// A CUDA event: a place in a stream that other streams and the host can wait for.
class Event : NonCopyable {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
  ~Event() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "marking a place in a stream"); }
  void make_wait(cudaStream_t stream) {
    check(cudaStreamWaitEvent(stream, event_, 0), "ordering two streams");
  }
  void wait_on_host() { check(cudaEventSynchronize(event_), "waiting for the device"); }

 private:
  cudaEvent_t event_ = nullptr;
};

class PinnedStaging final : public Staging {
 public:
  PinnedStaging() { copy_stream(); }
  ~PinnedStaging() override {
    // Copies that are under way must end first. A destructor ignores failures.
    cudaStreamSynchronize(copy_stream());
    cudaStreamSynchronize(stream());
    free_both();
  }

  std::byte* room(int64_t bytes) override {
    arrived_.wait_on_host();
    bytes_ = bytes;
    if (bytes > room_) {
      taken_.wait_on_host();
      free_both();
      const auto new_room =
          static_cast<size_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(bytes, 4096))));
      void* allocated = nullptr;
      check(cudaMallocHost(&allocated, new_room), "pinned memory of the host");
      host_ = static_cast<std::byte*>(allocated);
      check(cudaMalloc(&allocated, new_room), "memory that batches arrive in");
      device_ = static_cast<std::byte*>(allocated);
      room_ = static_cast<int64_t>(new_room);
    }
    return host_;
  }
  void send() override {
    taken_.make_wait(copy_stream());
    if (bytes_ > 0) {
      check(
          cudaMemcpyAsync(device_, host_, static_cast<size_t>(bytes_), cudaMemcpyHostToDevice, copy_stream()),
          "copying a batch to the device");
    }
    arrived_.record(copy_stream());
    must_wait_ = true;
  }
  void take(void* to, int64_t offset, int64_t bytes) override {
    if (must_wait_) arrived_.make_wait(stream());
    must_wait_ = false;
    if (bytes == 0) return;
    check(
        cudaMemcpyAsync(to, device_ + offset, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream()),
        "taking a batch");
  }
  void release() override { taken_.record(stream()); }

 private:
  void free_both() {
    cudaFreeHost(host_);
    cudaFree(device_);
    host_ = device_ = nullptr;
    room_ = 0;
  }

  std::byte *host_ = nullptr, *device_ = nullptr;  // both buffers have room_ bytes
  int64_t room_ = 0, bytes_ = 0;                   // allocated bytes, and those of the batch
  Event arrived_;                                  // behind the last copy to the device
  Event taken_;                                    // behind the last take()
  bool must_wait_ = false;                         // the computing stream does not wait for arrived_ yet
};

}  // namespace

std::unique_ptr<Staging> make_staging() { return std::make_unique<PinnedStaging>(); }

}  // namespace heed::cuda
