// Memory of tensors: cached, counted, capped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heed/core/device.h"

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
  /// Version number: grows by one with each write after the first fill (optimizers, caches).
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

/// What storage holds that belongs to no module.
enum class MemoryKind : uint8_t { weights, gradients, moments, batches };
/// Names of the kinds in reports, in their order. The address of an entry identifies its kind as an owner.
inline constexpr const char* memory_kind_names[] = {"weights", "gradients", "moments", "batches"};
/// The owner that stands for a kind in MemoryUser.
inline const void* owner_of(MemoryKind kind) { return &memory_kind_names[static_cast<size_t>(kind)]; }

/// The owner of storage that this thread allocates: a module, or owner_of() a kind; null: none.
inline thread_local const void* memory_owner = nullptr;

/// While it lives, storage that this thread allocates belongs to `owner`.
struct MemoryScope {
  explicit MemoryScope(const void* owner) : outer_(memory_owner) { memory_owner = owner; }
  explicit MemoryScope(MemoryKind kind) : MemoryScope(owner_of(kind)) {}
  ~MemoryScope() { memory_owner = outer_; }
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  const void* outer_;
};

/// Memory statistics of one device, in bytes.
struct MemoryUse {
  int64_t live = 0;      ///< held by tensors now
  int64_t peak = 0;      ///< the most that was live since reset_peak()
  int64_t reserved = 0;  ///< taken from the system, live or cached
  int64_t mapped = 0;    ///< number of requests to the system
};

struct MemoryUser {
  const void* owner;
  int64_t bytes;
};

/// Bytes by owner, the largest first; at most 500 owners.
std::vector<MemoryUser> memory_users(Device device = default_device);
/// The same at the time when memory last ran out.
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

/// While it lives, GPU storage comes from a pool that only captured steps use; they share it, since they are
/// replayed one after the other. Frees cached blocks first if less than that is free: capturing needs a
/// second working set.
struct CapturedMemory {
  CapturedMemory();
  ~CapturedMemory();
  CapturedMemory(const CapturedMemory&) = delete;
  CapturedMemory& operator=(const CapturedMemory&) = delete;
};

}  // namespace heed
