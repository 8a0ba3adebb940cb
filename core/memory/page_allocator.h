// An allocator for large blocks: splits and joins ranges of pages (best fit).
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace heed {

/// The system calls by which an arena gets pages of the host or of a device.
struct MemorySource {
  /// Maps at least `bytes`, at address `hint` if possible; nullptr when memory is out.
  char* (*map)(char* hint, int64_t bytes);
  /// Returns memory to the system; false when that fails.
  bool (*unmap)(char* at, int64_t bytes);
  int64_t min_bytes;  ///< smallest request to the system
  bool in_pieces;     ///< whether parts of a mapping can be unmapped, and neighbouring mappings joined
};
/// Pages of this process.
const MemorySource& host_memory();

/// Allocates blocks of whole pages. Splits the smallest free block that fits, and joins a freed block with
/// its free neighbours, so batches of many shapes share the same memory. Not thread-safe.
class Arena {
 public:
  static constexpr int64_t page = 4096;

  explicit Arena(const MemorySource& source = host_memory()) : source_(&source) {}

  /// `bytes` is a multiple of `page`. Asks the system for at most `allowance` bytes when no free block fits;
  /// nullptr when that is too little or the system has none.
  void* take(int64_t bytes, int64_t allowance);
  /// Returns a block to the arena.
  void give(void* block, int64_t bytes) noexcept;
  /// Returns free blocks to the system; where mappings can only be unmapped whole, keeps the first `kept`.
  /// Returns the number of bytes.
  int64_t release(int64_t kept = 0);

  /// The number of the mapping of a block, counted from 1, where mappings can only be unmapped whole.
  int64_t mapping_of(char* block) const { return std::prev(whole_.upper_bound(block))->second.number; }

  int64_t reserved() const { return reserved_; }  ///< bytes from the system, taken or free
  int64_t mapped() const { return mapped_; }      ///< number of requests to the system

 private:
  using Blocks = std::map<char*, int64_t>;
  using Sizes = std::set<std::pair<int64_t, char*>>;
  /// List nodes of one free block.
  struct Spare {
    Blocks::node_type block;
    Sizes::node_type size;
  };

  char* grow(int64_t bytes, int64_t allowance);
  char* grow_apart(int64_t bytes, int64_t allowance);
  int64_t release_whole_mappings(int64_t kept);
  void prepare();
  void add(char* block, int64_t bytes) noexcept;
  void remove(Blocks::iterator block) noexcept;

  struct Mapping {
    int64_t bytes, number;
  };

  const MemorySource* source_;
  std::map<char*, Mapping> whole_;  // mappings that can only be unmapped whole, by address
  Blocks free_;                     // free blocks by address; no two are neighbours
  Sizes sizes_;                     // free blocks by size
  // More than blocks are taken, so that give(), which destructors call, needs no memory.
  std::vector<Spare> spares_;
  int64_t taken_ = 0;    // number of blocks taken and not given back
  char* end_ = nullptr;  // end of the last mapping
  int64_t reserved_ = 0, mapped_ = 0;
};

}  // namespace heed
