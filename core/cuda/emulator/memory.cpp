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
constexpr size_t range = size_t{1} << 40;

size_t pages(size_t bytes) { return (std::max<size_t>(bytes, 1) + page - 1) / page * page; }

struct Memory {
  std::mutex mutex;
  std::byte* first = nullptr;   // begin of the range, which is never unmapped
  std::byte* unused = nullptr;  // begin of addresses that were never allocated
  std::map<std::byte*, size_t> taken, freed;
  std::map<std::byte*, size_t> pinned;
  int open = 0;
  size_t bytes = 0, max_bytes = 0;  // allocated; limit, or 0 for none
  bool guarded = true;

  Memory() {
    const char* mode = std::getenv("HEED_EMULATED_GUARD");
    guarded = mode == nullptr || std::string(mode) != "off";
    void* at = mmap(nullptr, range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      fail(Fault::memory, "emulated device: no addresses for its memory; lift the limit on them.");
    first = unused = static_cast<std::byte*>(at);
  }

  void protect(std::byte* at, size_t size) const {
    mprotect(at, size, open > 0 || !guarded ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  void protect_all() const {
    for (const auto& [at, size] : taken) protect(at, size);
  }
  bool holds(const void* at) const { return at >= first && at < first + range; }
};

Memory& memory() {
  static auto* one = new Memory;
  return *one;
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

bool on_device(const volatile void* at) {
  if (at == nullptr) return true;
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  auto* place = static_cast<std::byte*>(const_cast<void*>(at));
  auto next = m.taken.upper_bound(place);
  if (next == m.taken.begin()) return false;
  --next;
  return place <= next->first + next->second;
}

void size_memory(size_t bytes) {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  m.max_bytes = bytes;
}

void need_device_pointer(const volatile void* at) {
  if (!on_device(at)) {
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
  const size_t size = pages(bytes);
  if (m.max_bytes > 0 && m.bytes + size > m.max_bytes) return cudaErrorMemoryAllocation;
  std::byte* place = nullptr;
  for (auto one = m.freed.begin(); one != m.freed.end(); ++one) {
    if (one->second < size) continue;
    place = one->first;
    const size_t rest = one->second - size;
    m.freed.erase(one);
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
  const size_t size = pages(bytes);
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

bool pinned(const void* at, size_t bytes) {
  auto& m = memory();
  const std::lock_guard lock(m.mutex);
  auto* place = static_cast<std::byte*>(const_cast<void*>(at));
  auto next = m.pinned.upper_bound(place);
  if (next == m.pinned.begin()) return false;
  --next;
  return place + bytes <= next->first + next->second;
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
  if (captured || !to_device || from_device || pinned(from, bytes)) {
    const cudaError_t queued = enqueue(stream, [=] {
      const Open open;
      std::memmove(to, from, bytes);
    });
    // The host waits for copies to pageable memory.
    const bool waits = queued == cudaSuccess && !captured && !to_device && !pinned(to, bytes);
    return waits ? cudaStreamSynchronize(stream) : queued;
  }
  // Pageable memory may be changed once this returns, so its bytes are copied now.
  const auto* first = static_cast<const std::byte*>(from);
  return enqueue(stream, [to, kept = std::vector<std::byte>(first, first + bytes)] {
    const Open open;
    std::memcpy(to, kept.data(), kept.size());
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
