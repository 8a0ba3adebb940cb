// Asynchronous copies of batches from the host to the device, without CUDA's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace heed::cuda {

/// Two buffers for one batch: pinned memory of the host, and memory of the device. For each batch
///   a loading thread      fills room() and calls send(), which copies it on a stream that all stagings share
///   the computing thread  calls take() for each tensor, which copies it on its own stream, then release()
/// Only the device waits for the copy.
class Staging {
 public:
  virtual ~Staging() = default;
  /// The host's buffer, of at least `bytes`, which the caller may write until send(). Waits until the copy of
  /// the last batch has ended.
  virtual std::byte* room(int64_t bytes) = 0;
  /// Queues the copy of room() to the device's buffer, behind the take() calls of the last batch.
  virtual void send() = 0;
  /// Queues a copy of `bytes` bytes of the device's buffer, from `offset` on, to `to` on this thread's
  /// stream.
  virtual void take(void* to, int64_t offset, int64_t bytes) = 0;
  /// Ends the take() calls of a batch: room() and send() may be called for the next one, by any thread.
  virtual void release() = 0;
};

/// Makes empty buffers. Fails where there is no device.
std::unique_ptr<Staging> make_staging();

}  // namespace heed::cuda
