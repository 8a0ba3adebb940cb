// Blocks of all sizes from the memory of one device.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/arena.h"
#include "core/device.h"

namespace heed {

/// The bytes of a block that serves a request of so many: whole pages, or for small ones up to eight steps a
/// power of two, so that at most an eighth is wasted.
int64_t room_for(int64_t bytes, Device device);

/// Tells the address sanitizer that nobody may touch the memory, which is cached; and that it is in use
/// again.
void forbid(void* data, int64_t bytes);
void permit(void* data, int64_t bytes);

/// Hands out blocks, large ones of an arena, and keeps those given back. Not thread-safe.
class MemoryPool {
 public:
  explicit MemoryPool(Device device);

  /// `room` is what room_for() said. Asks the system for at most `allowance` bytes; nullptr when there is
  /// none.
  void* take(int64_t room, int64_t allowance);
  void give(void* block, int64_t room);
  /// Gives free memory back to the system; on a device, nothing of the first `kept` mappings. Returns its
  /// bytes.
  int64_t release(int64_t kept = 0);

  int64_t reserved() const { return small_reserved_ + arena_.reserved(); }  ///< bytes held, taken or free
  int64_t cached() const { return reserved() - used_; }                     ///< those that are free
  int64_t mapped() const { return small_mapped_ + arena_.mapped(); }        ///< times the system was asked

 private:
  struct Slab {
    char* at;
    int64_t room;  // of each of its blocks
  };

  /// Blocks of one size.
  struct Small {
    std::vector<void*> free;  // with room for all of them: give() is called where nothing may fail
    int64_t made = 0;
    void expect(int64_t more);
  };

  void* find(int64_t room, int64_t allowance);
  void join_slabs(int64_t kept);
  int64_t release_small();

  Device device_;
  Arena arena_;
  std::unordered_map<int64_t, Small> small_;  // by size
  std::vector<Slab> slabs_;                   // what small ones are cut from, on a device
  int64_t small_reserved_ = 0, small_mapped_ = 0, used_ = 0;
};

}  // namespace heed
