// Memory pools: small blocks are cached by size, larger ones come from an arena.
#include "heed/core/memory/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/runtime/memory.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace heed {
namespace {

// Larger blocks are whole pages of the arena, which batches of all shapes share. Small blocks are cached by
// size, which wastes memory where sizes change, so they must be a small part of all memory.
constexpr int64_t max_small_bytes = int64_t{16} << 10;
// Sizes of small blocks of a device are multiples of device_step, for fast copies and vector loads; the
// blocks are parts of slabs.
constexpr int64_t device_step = 256, slab_bytes = int64_t{64} << 10;

/// The system calls by which a device gets pages.
const MemorySource& source_of(Device device) {
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) return cuda::memory_source();
  }
  return host_memory();
}

}  // namespace

int64_t block_bytes_for(int64_t bytes, Device device) {
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) bytes += cuda::guard_bytes;
  }
  if (bytes > max_small_bytes) return ceil_div(bytes, Arena::page) * Arena::page;
  const int64_t min_step = device == Device::cpu ? 64 : device_step, wanted = std::max(bytes, min_step);
  const int64_t step =
      std::max(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(wanted))) / 8, min_step);
  return ceil_div(wanted, step) * step;
}

void poison([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, static_cast<size_t>(bytes));
#endif
}

void unpoison([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, static_cast<size_t>(bytes));
#endif
}

MemoryPool::MemoryPool(Device device) : device_(device), arena_(source_of(device)) {}

void* MemoryPool::take(int64_t block_bytes, int64_t allowance) {
  void* block = find(block_bytes, allowance);
  if (block != nullptr) used_ += block_bytes;
  return block;
}

/// Reserves capacity of the list for `more` blocks.
void MemoryPool::SmallBlocks::reserve(int64_t more) {
  const auto capacity = static_cast<size_t>(num_blocks + more);
  if (capacity > free.capacity()) free.reserve(std::max(capacity, 2 * free.capacity()));
}

/// Takes a free block, or makes new ones: cut from a slab on a GPU, one at a time on the CPU.
void* MemoryPool::find(int64_t block_bytes, int64_t allowance) {
  if (block_bytes > max_small_bytes) return arena_.take(block_bytes, allowance);
  SmallBlocks& small = small_[block_bytes];
  auto& blocks = small.free;
  if (blocks.empty() && device_ != Device::cpu) {
    small.reserve(slab_bytes / block_bytes);
    if (slabs_.size() == slabs_.capacity()) slabs_.reserve(2 * slabs_.size() + 16);
    auto* slab = static_cast<char*>(arena_.take(slab_bytes, allowance));
    if (slab == nullptr) return nullptr;
    slabs_.push_back({slab, block_bytes});
    for (int64_t end = slab_bytes / block_bytes * block_bytes; end > 0; end -= block_bytes)
      blocks.push_back(slab + end - block_bytes);
    small.num_blocks += slab_bytes / block_bytes;
  }
  if (!blocks.empty()) {
    void* block = blocks.back();
    blocks.pop_back();
    return block;
  }
  if (block_bytes > allowance) return nullptr;
  small.reserve(1);
  void* block = std::aligned_alloc(64, static_cast<size_t>(block_bytes));
  if (block != nullptr) {
    ++small.num_blocks;
    small_reserved_ += block_bytes;
    ++small_mapped_;
  }
  return block;
}

void MemoryPool::give_back(void* block, int64_t block_bytes) {
  used_ -= block_bytes;
  if (block_bytes > max_small_bytes)
    arena_.give(block, block_bytes);
  else
    small_.find(block_bytes)->second.free.push_back(block);
}

/// Returns slabs without used blocks to the arena, except slabs of the first `kept` mappings: memory that a
/// captured step uses as small blocks must not become a large block of another step.
void MemoryPool::join_slabs(int64_t kept) {
  std::erase_if(slabs_, [&](const Slab& slab) {
    if (arena_.mapping_of(slab.begin) <= kept) return false;
    SmallBlocks& small = small_[slab.block_bytes];
    auto& blocks = small.free;
    const auto within = [&](void* block) { return block >= slab.begin && block < slab.begin + slab_bytes; };
    if (std::count_if(blocks.begin(), blocks.end(), within) < slab_bytes / slab.block_bytes) return false;
    std::erase_if(blocks, within);
    small.num_blocks -= slab_bytes / slab.block_bytes;
    arena_.give(slab.begin, slab_bytes);
    return true;
  });
}

/// Returns the free small blocks of the CPU to the C library. Returns the number of bytes.
int64_t MemoryPool::release_small() {
  int64_t released = 0;
  for (auto& [size, small] : small_) {
    for (void* block : small.free) {
      unpoison(block, size);
      std::free(block);
      released += size;
    }
    small.num_blocks -= static_cast<int64_t>(small.free.size());
    small.free.clear();
  }
  small_reserved_ -= released;
  return released;
}

int64_t MemoryPool::release(int64_t kept) {
  if (device_ == Device::cpu) return arena_.release() + release_small();
  join_slabs(kept);
  return arena_.release(kept);
}

}  // namespace heed
