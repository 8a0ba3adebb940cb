// Memory pools: small blocks are cached by size, large ones come from an arena.
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

// Larger blocks are whole pages of the arena, which batches of all shapes share. Smaller blocks are cached by
// size, which wastes memory where sizes change, so they must be a small part of all.
constexpr int64_t large = int64_t{16} << 10;
// Sizes of small blocks of a device are multiples of device_step, for fast copies and vector loads; the
// blocks are parts of slabs.
constexpr int64_t device_step = 256, slab_bytes = int64_t{64} << 10;

const MemorySource& source_of(Device device) {
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) return cuda::memory_source();
  }
  return host_memory();
}

}  // namespace

int64_t room_for(int64_t bytes, Device device) {
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) bytes += cuda::guard_bytes;
  }
  if (bytes > large) return ceil_div(bytes, Arena::page) * Arena::page;
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

void* MemoryPool::take(int64_t room, int64_t allowance) {
  void* block = find(room, allowance);
  if (block != nullptr) used_ += room;
  return block;
}

/// Reserves room in the list for `more` blocks.
void MemoryPool::Small::expect(int64_t more) {
  const auto wanted = static_cast<size_t>(made + more);
  if (wanted > free.capacity()) free.reserve(std::max(wanted, 2 * free.capacity()));
}

void* MemoryPool::find(int64_t room, int64_t allowance) {
  if (room > large) return arena_.take(room, allowance);
  Small& small = small_[room];
  auto& blocks = small.free;
  if (blocks.empty() && device_ != Device::cpu) {
    small.expect(slab_bytes / room);
    if (slabs_.size() == slabs_.capacity()) slabs_.reserve(2 * slabs_.size() + 16);
    auto* slab = static_cast<char*>(arena_.take(slab_bytes, allowance));
    if (slab == nullptr) return nullptr;
    slabs_.push_back({slab, room});
    for (int64_t at = slab_bytes / room * room; at > 0; at -= room) blocks.push_back(slab + at - room);
    small.made += slab_bytes / room;
  }
  if (!blocks.empty()) {
    void* block = blocks.back();
    blocks.pop_back();
    return block;
  }
  if (room > allowance) return nullptr;
  small.expect(1);
  void* block = std::aligned_alloc(64, static_cast<size_t>(room));
  if (block != nullptr) {
    ++small.made;
    small_reserved_ += room;
    ++small_mapped_;
  }
  return block;
}

void MemoryPool::give(void* block, int64_t room) {
  used_ -= room;
  if (room > large)
    arena_.give(block, room);
  else
    small_.find(room)->second.free.push_back(block);
}

/// Returns slabs without used blocks to the arena, except slabs of the first `kept` mappings: memory that a
/// captured step uses as small blocks must not become a large block of another step.
void MemoryPool::join_slabs(int64_t kept) {
  std::erase_if(slabs_, [&](const Slab& slab) {
    if (arena_.mapping_of(slab.at) <= kept) return false;
    Small& small = small_[slab.room];
    auto& blocks = small.free;
    const auto within = [&](void* block) { return block >= slab.at && block < slab.at + slab_bytes; };
    if (std::count_if(blocks.begin(), blocks.end(), within) < slab_bytes / slab.room) return false;
    std::erase_if(blocks, within);
    small.made -= slab_bytes / slab.room;
    arena_.give(slab.at, slab_bytes);
    return true;
  });
}

int64_t MemoryPool::release_small() {
  int64_t given = 0;
  for (auto& [size, small] : small_) {
    for (void* block : small.free) {
      unpoison(block, size);
      std::free(block);
      given += size;
    }
    small.made -= static_cast<int64_t>(small.free.size());
    small.free.clear();
  }
  small_reserved_ -= given;
  return given;
}

int64_t MemoryPool::release(int64_t kept) {
  if (device_ == Device::cpu) return arena_.release() + release_small();
  join_slabs(kept);
  return arena_.release(kept);
}

}  // namespace heed
