// Memory of tensors: cached, counted, capped.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device.h"

namespace heed {

/// A run of bytes on a device, aligned to 64. Freed memory is kept for the next request of its size class,
/// so a training step maps nothing after the second one. Fails (Fault::memory) past the cap.
class Storage {
 public:
  Storage(int64_t bytes, Device device);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// Grows by one whenever something writes into it after it was first filled (optimizers, memories).
  uint64_t version = 0;

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t class_ = 0;
  Device device_;
};

/// Bytes asked of Storage on one device.
struct MemoryUse {
  int64_t live = 0;      ///< held by tensors now
  int64_t peak = 0;      ///< the most that was live since reset_peak()
  int64_t reserved = 0;  ///< taken from the system, live or cached
  int64_t mapped = 0;    ///< how many times the system was asked
};

MemoryUse memory_use(Device device = Device::cpu);
void reset_peak(Device device = Device::cpu);
/// No Storage may take `reserved` past this many bytes; 0 means no cap.
void cap_memory(int64_t bytes, Device device = Device::cpu);
/// Gives cached memory back to the system.
void release_cached(Device device = Device::cpu);

}  // namespace heed
