// Memory of tensors: cached by device, counted by owner, limited by a cap.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heed/core/device.h"
#include "heed/core/scope.h"

namespace heed {

/// A block of bytes on a device, aligned to 64 bytes on the CPU and to 256 on a GPU. Freed blocks are cached
/// for later requests, on a GPU in the order of its stream, so that training requests no memory from the
/// system after its largest batch. Fails (Fault::memory) past the cap.
class Storage : NonCopyable {
 public:
  Storage(int64_t bytes, Device device);
  ~Storage();

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// Version number of the contents: optimizers and caches increase it with each write.
  uint64_t version = 0;

 private:
  friend struct StorageList;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t block_bytes_ = 0;  // bytes_ rounded up to the size of a block
  const void* owner_;
  Storage *before_ = nullptr, *after_ = nullptr;  // neighbours in the list of living storages
  Device device_;
  bool captured_;  // whether its memory is from the pool of captured steps
};

/// Contents of storage that belongs to no module.
enum class MemoryKind : uint8_t { weights, gradients, moments, batches };
/// Names of the kinds in reports, in the order of MemoryKind. The address of an entry is its kind's owner.
inline constexpr const char* memory_kind_names[] = {"weights", "gradients", "moments", "batches"};
/// The owner that stands for a kind in MemoryUser.
inline const void* owner_of(MemoryKind kind) { return &memory_kind_names[static_cast<size_t>(kind)]; }

/// The owner of storage that this thread allocates: a module, or owner_of() of a kind; null: no owner.
inline thread_local const void* memory_owner = nullptr;

/// While it lives, storage that this thread allocates belongs to `owner`.
class MemoryScope {
 public:
  explicit MemoryScope(const void* owner) : owner_(memory_owner, owner) {}
  explicit MemoryScope(MemoryKind kind) : MemoryScope(owner_of(kind)) {}

 private:
  ScopedValue<const void*> owner_;
};

/// Memory statistics of one device, in bytes.
struct MemoryUse {
  int64_t live = 0;      ///< held by tensors now
  int64_t peak = 0;      ///< maximum of `live` since reset_peak()
  int64_t reserved = 0;  ///< requested from the system, live or cached
  int64_t mapped = 0;    ///< number of requests to the system
};

/// An owner of storage and the bytes that it holds.
struct MemoryUser {
  const void* owner;
  int64_t bytes;
};

/// Bytes by owner, the largest first; at most 500 owners.
std::vector<MemoryUser> memory_users(Device device = default_device);
/// The memory_users() at the time when memory last ran out.
std::vector<MemoryUser> memory_users_at_failure(Device device = default_device);
/// For std::set_new_handler, when the heap is exhausted: returns cached memory to the system; where there is
/// none, records memory_users_at_failure() and throws std::bad_alloc.
void make_room();

/// Memory statistics of a device.
MemoryUse memory_use(Device device = default_device);
/// Sets MemoryUse::peak to MemoryUse::live.
void reset_peak(Device device = default_device);
/// Limits MemoryUse::reserved to `bytes`; 0 means no cap.
void cap_memory(int64_t bytes, Device device = default_device);
/// Returns cached memory to the system, except that of captured steps.
void release_cached(Device device = default_device);

/// While it lives, GPU storage comes from a pool that captured steps share, since they are replayed one after
/// the other. The constructor frees cached blocks where less memory is free than they hold: capturing a step
/// needs as much memory as running it, a second time.
struct CapturedMemory : NonCopyable {
  CapturedMemory();
  ~CapturedMemory();
};

}  // namespace heed
