// Bytes on their way from the host to the device beside its other work, without CUDA's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace heed::cuda {

/// Pinned memory of the host and as much of the device. A thread of the host fills it and has it copied on a
/// stream that all stagings share and nothing else uses; the thread that computes takes what it needs from it
/// in the order of its own stream. The device alone waits for the copy, and nobody's host. Fill, send, take,
/// release; then again.
class Staging {
 public:
  virtual ~Staging() = default;
  /// Memory of the host for `bytes`, which may be written until send(). Waits until a copy that still reads
  /// it is done.
  virtual std::byte* room(int64_t bytes) = 0;
  /// Begins to copy what room() was asked for, once what was taken before has been read on the device.
  virtual void send() = 0;
  /// Queues a copy of `bytes` from `offset` on to `to`, memory of the device, on this thread's stream.
  virtual void take(void* to, int64_t offset, int64_t bytes) = 0;
  /// All is taken: room() and send() may be called again, by any thread.
  virtual void release() = 0;
};

/// Fails where there is no device.
std::unique_ptr<Staging> make_staging();

}  // namespace heed::cuda
