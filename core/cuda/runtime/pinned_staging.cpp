// Pinned memory, and the stream for copies of it.
#include "heed/core/cuda/runtime/pinned_staging.h"

#include <algorithm>
#include <bit>

#include "heed/core/cuda/runtime/stream.h"
#include "heed/core/scope.h"

namespace heed::cuda {
namespace {

cudaStream_t copy_stream() {
  static const cudaStream_t one = [] {
    stream();  // opens the device
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream for copies");
    return made;
  }();
  return one;
}

class Event : NonCopyable {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
  ~Event() { cudaEventDestroy(event_); }
  void record(cudaStream_t on) { check(cudaEventRecord(event_, on), "marking a place in a stream"); }
  void hold(cudaStream_t later) { check(cudaStreamWaitEvent(later, event_, 0), "ordering two streams"); }
  void wait() { check(cudaEventSynchronize(event_), "waiting for the device"); }

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
    arrived_.wait();
    bytes_ = bytes;
    if (bytes > room_) {
      taken_.wait();
      free_both();
      const auto more =
          static_cast<size_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(bytes, 4096))));
      void* at = nullptr;
      check(cudaMallocHost(&at, more), "pinned memory of the host");
      host_ = static_cast<std::byte*>(at);
      check(cudaMalloc(&at, more), "memory that batches arrive in");
      device_ = static_cast<std::byte*>(at);
      room_ = static_cast<int64_t>(more);
    }
    return host_;
  }
  void send() override {
    taken_.hold(copy_stream());
    if (bytes_ > 0) {
      check(
          cudaMemcpyAsync(device_, host_, static_cast<size_t>(bytes_), cudaMemcpyHostToDevice, copy_stream()),
          "copying a batch to the device");
    }
    arrived_.record(copy_stream());
    fresh_ = true;
  }
  void take(void* to, int64_t offset, int64_t bytes) override {
    if (fresh_) arrived_.hold(stream());
    fresh_ = false;
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

  std::byte *host_ = nullptr, *device_ = nullptr;
  int64_t room_ = 0, bytes_ = 0;
  Event arrived_, taken_;  // recorded behind the last copy to the device, and behind the last take()
  bool fresh_ = false;     // the computing stream does not wait for arrived_ yet
};

}  // namespace

std::unique_ptr<Staging> make_staging() { return std::make_unique<PinnedStaging>(); }

}  // namespace heed::cuda
