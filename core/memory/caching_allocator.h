// A caching allocator for blocks of all sizes on one device.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "heed/core/device.h"
#include "heed/core/memory/page_allocator.h"

namespace heed {

/// Size of the block that serves a request of `bytes`: whole pages, or for small requests one of eight sizes
/// per power of two, which wastes at most an eighth.
int64_t room_for(int64_t bytes, Device device);

/// Marks cached memory as inaccessible for the address sanitizer.
void poison(void* data, int64_t bytes);
/// Marks memory as accessible again.
void unpoison(void* data, int64_t bytes);

/// Allocates blocks, large ones from an arena, and caches freed ones. Not thread-safe.
class MemoryPool {
 public:
  explicit MemoryPool(Device device);

  /// `room` is a result of room_for(). Requests at most `allowance` bytes from the system; nullptr when
  /// memory is out.
  void* take(int64_t room, int64_t allowance);
  void give(void* block, int64_t room);
  /// Returns free memory to the system, on a device except the first `kept` mappings. Returns the number of
  /// bytes.
  int64_t release(int64_t kept = 0);

  int64_t reserved() const { return small_reserved_ + arena_.reserved(); }  ///< bytes held, taken or free
  int64_t cached() const { return reserved() - used_; }                     ///< those that are free
  int64_t mapped() const { return small_mapped_ + arena_.mapped(); }        ///< requests to the system

 private:
  struct Slab {
    char* at;
    int64_t room;  // size of each block of the slab
  };

  /// Blocks of one size.
  struct Small {
    std::vector<void*> free;  // has capacity for all of them: give() is called where nothing may fail
    int64_t made = 0;
    void expect(int64_t more);
  };

  void* find(int64_t room, int64_t allowance);
  void join_slabs(int64_t kept);
  int64_t release_small();

  Device device_;
  Arena arena_;
  std::unordered_map<int64_t, Small> small_;  // by size
  std::vector<Slab> slabs_;                   // device memory that small blocks are cut from
  int64_t small_reserved_ = 0, small_mapped_ = 0, used_ = 0;
};

}  // namespace heed
