// The caching allocator.
#include "core/storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/error.h"

namespace heed {
namespace {

/// Sizes are rounded up to eight steps a power of two: batches of slightly different shapes share memory,
/// and at most an eighth is wasted.
int64_t size_class(int64_t bytes) {
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(bytes, 64));
  const auto step = std::max<uint64_t>(std::bit_floor(wanted) / 8, 64);
  return static_cast<int64_t>((wanted + step - 1) / step * step);
}

struct Cache {
  std::mutex mutex;
  std::unordered_map<int64_t, std::vector<void*>> free;
  MemoryUse use;
  int64_t cap = 0;

  void release() {
    for (auto& [size, blocks] : free) {
      for (void* block : blocks) {
        std::free(block);
        use.reserved -= size;
      }
      blocks.clear();
    }
  }
};

// Never destroyed: tensors in static objects may be freed after main returns.
Cache& cache() {
  static auto* one = new Cache;
  return *one;
}

constexpr int64_t huge_page = int64_t{2} << 20;

void* map(int64_t bytes) {
  // aligned_alloc takes whole multiples of the alignment only.
  const int64_t alignment = bytes >= 2 * huge_page ? huge_page : 64;
  const int64_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(whole));
  if (block != nullptr && alignment == huge_page) madvise(block, static_cast<size_t>(whole), MADV_HUGEPAGE);
  return block;
}

}  // namespace

Storage::Storage(int64_t bytes, Device device) : bytes_(bytes), class_(size_class(bytes)), device_(device) {
  if (device != Device::cpu)
    fail(Fault::device, "storage: no memory on ", to_string(device), ": ", why_no_cuda(), ".");
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  if (auto& blocks = c.free[class_]; !blocks.empty()) {
    data_ = blocks.back();
    blocks.pop_back();
  } else {
    if (c.cap > 0 && c.use.reserved + class_ > c.cap) c.release();
    const bool allowed = c.cap == 0 || c.use.reserved + class_ <= c.cap;
    data_ = allowed ? map(class_) : nullptr;
    if (data_ == nullptr && allowed) {
      c.release();
      data_ = map(class_);
    }
    if (data_ == nullptr) {
      fail(Fault::memory, "memory: ", bytes, " bytes are asked for while ", c.use.live, " are in use",
           c.cap > 0 ? text(" and the cap is ", c.cap) : std::string(),
           ". Use a smaller batch, length or model.");
    }
    c.use.reserved += class_;
    ++c.use.mapped;
  }
  c.use.live += class_;
  c.use.peak = std::max(c.use.peak, c.use.live);
}

Storage::~Storage() {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.free[class_].push_back(data_);
  c.use.live -= class_;
}

MemoryUse memory_use(Device) {
  const std::lock_guard lock(cache().mutex);
  return cache().use;
}

void reset_peak(Device) {
  const std::lock_guard lock(cache().mutex);
  cache().use.peak = cache().use.live;
}

void cap_memory(int64_t bytes, Device) {
  const std::lock_guard lock(cache().mutex);
  cache().cap = bytes;
}

void release_cached(Device) {
  const std::lock_guard lock(cache().mutex);
  cache().release();
}

}  // namespace heed
