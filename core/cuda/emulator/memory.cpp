// Memory of an emulated device: a range of addresses that only kernels and copies may access.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "heed/core/cuda/emulator/cuda_runtime.h"
#include "heed/core/error.h"

namespace heed::emulated {
namespace {

constexpr size_t page = 4096;
constexpr size_t huge_page = size_t{2} << 20;  // large blocks have huge pages, which are protected faster
constexpr size_t range = size_t{1} << 40;      // bytes of addresses

/// `bytes` rounded up to whole pages.
size_t page_bytes(size_t bytes) { return (std::max<size_t>(bytes, 1) + page - 1) / page * page; }

struct Memory {
  std::mutex mutex;
  std::byte* first = nullptr;                         // start of the range, which is never unmapped
  std::byte* unused = nullptr;                        // start of the addresses that were never allocated
  std::map<std::byte*, size_t> taken, freed, pinned;  // address and bytes of each block
  int open = 0;                                       // number of living Open objects
  size_t bytes = 0, max_bytes = 0;                    // allocated; limit, or 0 for none
  bool guarded = true;                                // protects blocks while `open` is 0

  Memory() {
    const char* mode = std::getenv("HEED_EMULATED_GUARD");
    guarded = mode == nullptr || std::string(mode) != "off";
    void* mapped = mmap(nullptr, range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
      fail(Fault::memory, "emulated device: no addresses for its memory; lift the limit on them.");
    first = unused = static_cast<std::byte*>(mapped);
  }

  void protect(std::byte* block, size_t size) const {
    mprotect(block, size, open > 0 || !guarded ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  void protect_all() const {
    for (const auto& [block, size] : taken) protect(block, size);
  }
};

Memory& memory() {
  static auto* memory = new Memory;  // never destroyed: static objects may free memory at the end
  return *memory;
}

/// The last block that begins at or before the address; null where there is none.
const std::pair<std::byte* const, size_t>* block_before(const std::map<std::byte*, size_t>& blocks,
                                                        const volatile void* address) {
  const auto next = blocks.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
  return next == blocks.begin() ? nullptr : &*std::prev(next);
}

}  // namespace

Open::Open() {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  if (m.open++ == 0 && m.guarded) m.protect_all();
}

Open::~Open() {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  if (--m.open == 0 && m.guarded) m.protect_all();
}

bool on_device(const volatile void* address) {
  if (address == nullptr) return true;
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto* block = block_before(m.taken, address);
  return block != nullptr && address <= block->first + block->second;
}

void size_memory(size_t bytes) {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  m.max_bytes = bytes;
}

void need_device_pointer(const volatile void* pointer) {
  if (!on_device(pointer)) {
    fail(Fault::internal,
         "emulated device: a kernel is given a pointer to the host's memory, or to memory that was "
         "freed. Hand over device pointers, or values.");
  }
}

}  // namespace heed::emulated

using namespace heed::emulated;

cudaError_t cudaMalloc(void** at, size_t bytes) {
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  auto& m = memory();
  const std::lock_guard lock(m.mutex);
  const size_t size = page_bytes(bytes);
  if (m.max_bytes > 0 && m.bytes + size > m.max_bytes) return cudaErrorMemoryAllocation;
  std::byte* place = nullptr;
  for (auto block = m.freed.begin(); block != m.freed.end(); ++block) {
    if (block->second < size) continue;
    place = block->first;
    const size_t rest = block->second - size;
    m.freed.erase(block);
    if (rest > 0) m.freed[place + size] = rest;
    break;
  }
  if (place == nullptr) {
    if (size >= huge_page) m.unused += -reinterpret_cast<uintptr_t>(m.unused) % huge_page;
    if (m.unused + size + page > m.first + range) return cudaErrorMemoryAllocation;
    place = m.unused;
    m.unused += size + page;  // an inaccessible page between two blocks
  }
  if (mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return cudaErrorMemoryAllocation;
  if (size >= huge_page) madvise(place, size, MADV_HUGEPAGE);
  m.taken[place] = size;
  m.bytes += size;
  m.protect(place, size);
  *at = place;
  return cudaSuccess;
}

cudaError_t cudaFree(void* at) {
  if (at == nullptr) return cudaSuccess;
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  finish_all();  // as CUDA does
  auto& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto found = m.taken.find(static_cast<std::byte*>(at));
  if (found == m.taken.end()) return cudaErrorInvalidValue;
  mmap(at, found->second, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  m.bytes -= found->second;
  m.freed.insert(*found);
  m.taken.erase(found);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** at, size_t bytes) {
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  const size_t size = page_bytes(bytes);
  *at = std::aligned_alloc(page, size);
  if (*at == nullptr) return cudaErrorMemoryAllocation;
  auto& m = memory();
  const std::lock_guard lock(m.mutex);
  m.pinned[static_cast<std::byte*>(*at)] = size;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* at) {
  if (at == nullptr) return cudaSuccess;
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  finish_all();
  auto& m = memory();
  const std::lock_guard lock(m.mutex);
  if (m.pinned.erase(static_cast<std::byte*>(at)) == 0) return cudaErrorInvalidValue;
  std::free(at);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  auto& m = memory();
  const std::lock_guard lock(m.mutex);
  *total = m.max_bytes > 0 ? m.max_bytes : static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page;
  *available = *total - std::min(*total, m.bytes);
  return cudaSuccess;
}

namespace {

bool is_pinned(const void* address, size_t bytes) {
  auto& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto* block = block_before(m.pinned, address);
  return block != nullptr && static_cast<const std::byte*>(address) + bytes <= block->first + block->second;
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (on_device(to) != to_device || on_device(from) != from_device) return cudaErrorInvalidValue;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  // A graph copies from the address at each replay, also from pageable memory.
  const bool captured = status == cudaStreamCaptureStatusActive;
  if (captured || !to_device || from_device || is_pinned(from, bytes)) {
    const cudaError_t queued = enqueue(stream, [=] {
      const Open open;
      std::memmove(to, from, bytes);
    });
    // The host waits for copies to pageable memory.
    const bool waits = queued == cudaSuccess && !captured && !to_device && !is_pinned(to, bytes);
    return waits ? cudaStreamSynchronize(stream) : queued;
  }
  // Pageable memory may be changed once this returns, so its bytes are copied now.
  const auto* first = static_cast<const std::byte*>(from);
  return enqueue(stream, [to, copied = std::vector<std::byte>(first, first + bytes)] {
    const Open open;
    std::memcpy(to, copied.data(), copied.size());
  });
}

cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!on_device(at)) return cudaErrorInvalidValue;
  return enqueue(stream, [=] {
    const Open open;
    std::memset(at, value, bytes);
  });
}
