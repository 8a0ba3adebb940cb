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
int64_t block_bytes_for(int64_t bytes, Device device);

/// Marks cached memory as inaccessible for the address sanitizer.
void poison(void* data, int64_t bytes);
/// Marks memory as accessible again.
void unpoison(void* data, int64_t bytes);

/// Allocates blocks and caches freed ones: large ones in an arena, small ones by size. Not thread-safe.
class MemoryPool {
 public:
  explicit MemoryPool(Device device);

  /// Takes a block; `block_bytes` is a result of block_bytes_for(). Requests at most `allowance` bytes from
  /// the system; nullptr where memory is out.
  void* take(int64_t block_bytes, int64_t allowance);
  void give_back(void* block, int64_t block_bytes);
  /// Returns free memory to the system, on a GPU except that of the first `kept` mappings. Returns the number
  /// of bytes.
  int64_t release(int64_t kept = 0);

  int64_t reserved() const {
    return small_reserved_ + arena_.reserved();
  }                                                      ///< bytes from the system, taken or free
  int64_t cached() const { return reserved() - used_; }  ///< bytes of free blocks
  int64_t mapped() const { return small_mapped_ + arena_.mapped(); }  ///< requests to the system

 private:
  /// A block of the arena that is cut into small blocks of one size.
  struct Slab {
    char* begin;
    int64_t block_bytes;
  };

  /// Small blocks of one size.
  struct SmallBlocks {
    std::vector<void*> free;  // capacity for all blocks: give_back() must not fail
    int64_t num_blocks = 0;   // taken or free
    void reserve(int64_t more);
  };

  void* find(int64_t block_bytes, int64_t allowance);
  void join_slabs(int64_t kept);
  int64_t release_small();

  Device device_;
  Arena arena_;
  std::unordered_map<int64_t, SmallBlocks> small_;  // by size
  std::vector<Slab> slabs_;                         // device memory that small blocks are cut from
  int64_t small_reserved_ = 0, small_mapped_ = 0, used_ = 0;
};

}  // namespace heed
