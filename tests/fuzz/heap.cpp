// Counts allocations of operator new, to check a reader's heap limit.
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "heed/tests/fuzz/reader_rules.h"

namespace {

std::atomic<int64_t> live{0};
std::atomic<int64_t> peak{0};

void* counted_or_null(void* block) {
  if (block == nullptr) return nullptr;
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(block));
  int64_t seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return block;
}

void* counted(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return counted_or_null(block);
}

void give_back(void* block) {
  if (block == nullptr) return;
  live -= static_cast<int64_t>(malloc_usable_size(block));
  std::free(block);
}

void* aligned(size_t size, std::align_val_t alignment) {
  void* block = nullptr;
  const bool made = ::posix_memalign(&block, static_cast<size_t>(alignment), size == 0 ? 1 : size) == 0;
  return counted(made ? block : nullptr);
}

}  // namespace

void* operator new(size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new[](size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return counted_or_null(std::malloc(size == 0 ? 1 : size));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return counted_or_null(std::malloc(size == 0 ? 1 : size));
}
void* operator new(size_t size, std::align_val_t alignment) { return aligned(size, alignment); }
void* operator new[](size_t size, std::align_val_t alignment) { return aligned(size, alignment); }
void operator delete(void* block) noexcept { give_back(block); }
void operator delete[](void* block) noexcept { give_back(block); }
void operator delete(void* block, size_t) noexcept { give_back(block); }
void operator delete[](void* block, size_t) noexcept { give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { give_back(block); }

namespace heed::law {

int64_t heap_live() { return live.load(); }
int64_t heap_peak() { return peak.load(); }
void mark_peak() { peak = live.load(); }

}  // namespace heed::law
