// Memory of tensors: cached, counted, capped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/device.h"

namespace heed {

/// A run of bytes on a device, aligned to 64 (to 256 on a GPU, where it may be handed out again as soon as it
/// is freed: whatever was asked of the device before comes first). Freed memory is kept for later requests,
/// so training maps nothing once it has seen its largest batch. Fails (Fault::memory) past the cap.
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
  friend struct StorageList;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t room_ = 0;
  const void* owner_;
  Storage *before_ = nullptr, *after_ = nullptr;  // all that live, in a list
  Device device_;
  bool captured_;  // its memory belongs to the captured steps
};

/// Whom storage made in this thread belongs to: a module, or one of memory_kinds; null: nobody in particular.
inline thread_local const void* memory_owner = nullptr;

/// Storage made in this thread while one lives belongs to `owner`.
struct Owned {
  explicit Owned(const void* owner) : outer_(memory_owner) { memory_owner = owner; }
  ~Owned() { memory_owner = outer_; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

 private:
  const void* outer_;
};

/// Owners that are no modules; the address of an entry is the owner.
inline constexpr const char* memory_kinds[] = {"weights", "gradients", "moments", "batches"};

/// Bytes asked of Storage on one device.
struct MemoryUse {
  int64_t live = 0;      ///< held by tensors now
  int64_t peak = 0;      ///< the most that was live since reset_peak()
  int64_t reserved = 0;  ///< taken from the system, live or cached
  int64_t mapped = 0;    ///< how many times the system was asked
};

struct MemoryUser {
  const void* owner;
  int64_t bytes;
};

/// Who holds how much, the largest first; owners past the 500th are left out.
std::vector<MemoryUser> memory_users(Device device = default_device);
/// The same, as it was when memory last ran out.
std::vector<MemoryUser> memory_users_at_failure(Device device = default_device);
/// For std::set_new_handler: gives cached memory back to the system when the heap has none left; where there
/// is none, notes who holds how much and throws std::bad_alloc.
void make_room();

MemoryUse memory_use(Device device = default_device);
void reset_peak(Device device = default_device);
/// No Storage may take `reserved` past this many bytes; 0 means no cap.
void cap_memory(int64_t bytes, Device device = default_device);
/// Gives cached memory back to the system, except what captured steps may use again.
void release_cached(Device device = default_device);

/// While one lives, storage on the GPU comes from memory that nothing else uses: that of captured steps,
/// which all of them share, since one is replayed after the other. What such a step leaves behind stays where
/// it is. First gives back what is cached if less than that is free: the step takes as much once more.
struct CapturedMemory {
  CapturedMemory();
  ~CapturedMemory();
  CapturedMemory(const CapturedMemory&) = delete;
  CapturedMemory& operator=(const CapturedMemory&) = delete;
};

}  // namespace heed
