// Asynchronous copies of batches from the host to the device, without CUDA's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace heed::cuda {

/// A buffer of pinned memory of the host and one of the device. A loading thread fills the host's buffer,
/// which is copied on a stream that all stagings share; the computing thread copies parts of the device's
/// buffer in the order of its own stream. Only the device waits for the copy. The order of calls is room,
/// send, take, release, again and again.
class Staging {
 public:
  virtual ~Staging() = default;
  /// The host's buffer of at least `bytes`, which may be written until send(). Waits for a copy that reads
  /// it.
  virtual std::byte* room(int64_t bytes) = 0;
  /// Begins to copy the bytes of room(), once the device has finished earlier take() calls.
  virtual void send() = 0;
  /// Queues a copy of `bytes` from `offset` on to `to`, memory of the device, on this thread's stream.
  virtual void take(void* to, int64_t offset, int64_t bytes) = 0;
  /// Ends the take() calls: room() and send() may be called again, by any thread.
  virtual void release() = 0;
};

/// Fails where there is no device.
std::unique_ptr<Staging> make_staging();

}  // namespace heed::cuda
