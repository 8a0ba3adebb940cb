// Storage: blocks of the memory pools of each device, statistics, and caps.
#include "heed/core/memory/storage.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "heed/core/cuda/module/module.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/cuda/runtime/memory.h"
#include "heed/core/error.h"
#include "heed/core/io/byte_text.h"
#include "heed/core/memory/caching_allocator.h"
#include "heed/core/memory/capture_reservation.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/memory/out_of_memory.h"
#include "heed/core/scope.h"

namespace heed {

/// A linked list of all living storages.
struct StorageList {
  Storage* first = nullptr;

  void add(Storage* storage) {
    storage->after_ = first;
    if (first != nullptr) first->before_ = storage;
    first = storage;
  }
  void remove(Storage* storage) {
    (storage->before_ != nullptr ? storage->before_->after_ : first) = storage->after_;
    if (storage->after_ != nullptr) storage->after_->before_ = storage->before_;
  }

  /// Owners and their bytes. The array has a fixed size, since it is filled when memory has run out.
  struct Users {
    static constexpr int64_t max_count = 500;
    MemoryUser list[max_count];
    int64_t count = 0;
  };
  /// Sums the bytes of all storages by owner.
  void sum_by_owner(Users& users) const {
    users.count = 0;
    for (const Storage* storage = first; storage != nullptr; storage = storage->after_) {
      MemoryUser* const end = users.list + users.count;
      MemoryUser* user = std::find_if(
          users.list, end, [&](const MemoryUser& known) { return known.owner == storage->owner_; });
      if (user == end) {
        if (users.count == Users::max_count) continue;
        ++users.count;
        *user = {storage->owner_, 0};
      }
      user->bytes += storage->block_bytes_;
    }
  }
};

namespace {

// Bytes of the machine's memory: those of the heap, those of tensors, and the cap. They are no members of its
// Cache, since operator new reads them while the Cache is being constructed.
std::atomic<int64_t> heap_taken{0}, host_reserved{0}, host_cap{0};

/// The memory of one device.
struct Cache {
  explicit Cache(Device device) : is_host(device == Device::cpu), common(device), captured(device) {}

  const bool is_host;
  std::mutex mutex;
  MemoryPool common;
  MemoryPool captured;  // memory of captured steps
  StorageList living;
  StorageList::Users at_failure;  // owners when memory last ran out
  MemoryUse use;
  int64_t cap = 0;         // largest number of reserved bytes; 0: no cap
  int64_t capturing = 0;   // number of steps that are being captured
  int64_t replayable = 0;  // number of captured steps that can be replayed
  int64_t kept = 0;        // number of first mappings of `captured`, which replayable steps may use

  /// Updates the statistics after a change of the pools.
  void update_use() {
    use.reserved = common.reserved() + captured.reserved();
    use.mapped = common.mapped() + captured.mapped();
    if (is_host) host_reserved = use.reserved;
  }

  /// Frees cached memory, except what captured steps may use again: their kernels hold its addresses.
  int64_t release() {
    int64_t released = common.release();
    if (capturing == 0) released += captured.release(replayable > 0 ? kept : 0);
    update_use();
    return released;
  }

  /// Bytes of this device's memory that the heap holds.
  int64_t heap() const { return is_host ? heap_taken.load() : 0; }
  /// Bytes that may still be requested from the system.
  int64_t allowance() const { return cap == 0 ? INT64_MAX : cap - use.reserved - heap(); }

  /// Takes a block, after freeing cached memory where that is needed; null where memory ran out.
  void* take(int64_t block_bytes, bool is_captured) {
    MemoryPool& pool = is_captured ? captured : common;
    void* block = pool.take(block_bytes, allowance());
    if (block == nullptr && release() > 0) block = pool.take(block_bytes, allowance());
    update_use();
    return block;
  }
};

// Never destroyed: tensors in static objects may be freed after main returns.
Cache& cache(Device device = Device::cpu) {
  static auto* host = new Cache(Device::cpu);
  if (device == Device::cpu) return *host;
  if constexpr (built_with_cuda) {
    static auto* gpu = [] {
      cuda::require_open();  // every use of the GPU allocates memory first
      return new Cache(Device::cuda);
    }();
    return *gpu;
  }
  fail(Fault::device, "storage: no memory on ", to_string(device), ": ", why_no_cuda(), ".");
}

thread_local int capturing = 0;  // number of CapturedMemory objects of this thread

std::atomic<Device> shortage{Device::cpu};  // the device whose memory ran out last

/// True while this thread is inside the allocator: make_room() and take_heap() may be called from within it.
thread_local bool is_allocating = false;

/// The memory of a device, locked while this lives.
class LockedCache : NonCopyable {
 public:
  explicit LockedCache(Device device = Device::cpu) : cache_(cache(device)), lock_(cache_.mutex) {
    is_allocating = true;
  }
  ~LockedCache() { is_allocating = false; }
  Cache* operator->() { return &cache_; }

 private:
  Cache& cache_;
  std::lock_guard<std::mutex> lock_;
};

/// Takes a block; null where freeing cached memory and destroying evictable graphs is not enough.
void* find_block(int64_t block_bytes, Device device, bool is_captured) {
  if (void* block = LockedCache(device)->take(block_bytes, is_captured)) return block;
  if constexpr (built_with_cuda) {
    if (device == Device::cuda && !is_captured && cuda::give_up_graphs())
      return LockedCache(device)->take(block_bytes, is_captured);
  }
  return nullptr;
}

constexpr const char* no_memory_at_all = "out of memory. Use a smaller batch, length or model.";

/// The error of a request that exceeds the cap or the memory of the device; `cap` 0: no cap is set.
std::string shortage_text(Device device, int64_t bytes, int64_t used, int64_t cap) {
  return text("memory of the ", device == Device::cpu ? "machine: " : "GPU: ", bytes_text(bytes),
              " are asked for while ", bytes_text(used), " are in use",
              cap > 0 ? text(" and the cap is ", bytes_text(cap)) : std::string(),
              ". Use a smaller batch, length or model.");
}

std::vector<MemoryUser> largest_first(const StorageList::Users& users) {
  std::vector<MemoryUser> out(users.list, users.list + users.count);
  std::stable_sort(out.begin(), out.end(),
                   [](const MemoryUser& a, const MemoryUser& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace

CapturedMemory::CapturedMemory() {
  if constexpr (built_with_cuda) {
    const auto is_short = [] {
      LockedCache c(Device::cuda);
      return std::min(c->allowance(), cuda::free_bytes()) < c->common.cached();
    };
    if (is_short()) release_cached(Device::cuda);
    ++LockedCache(Device::cuda)->capturing;
  }
  ++capturing;
}

CapturedMemory::~CapturedMemory() {
  --capturing;
  if constexpr (built_with_cuda) {
    --LockedCache(Device::cuda)->capturing;
  }
}

CapturedKept::CapturedKept() {
  if constexpr (built_with_cuda) {
    LockedCache c(Device::cuda);
    ++c->replayable;
    c->kept = c->captured.mapped();
  }
}

CapturedKept::~CapturedKept() {
  if constexpr (built_with_cuda) {
    --LockedCache(Device::cuda)->replayable;
  }
}

Storage::Storage(int64_t bytes, Device device)
    : bytes_(bytes),
      block_bytes_(block_bytes_for(bytes, device)),
      owner_(memory_owner),
      device_(device),
      captured_(capturing > 0 && device == Device::cuda) {
  data_ = find_block(block_bytes_, device, captured_);
  LockedCache c(device);
  if (data_ == nullptr) {
    c->living.sum_by_owner(c->at_failure);
    shortage = device;
    fail(Fault::memory, shortage_text(device, bytes, c->use.live + c->heap(), c->cap));
  }
  c->living.add(this);
  unpoison(data_, block_bytes_);
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) cuda::prepare(data_, bytes_, block_bytes_);
  }
  poison(static_cast<char*>(data_) + bytes_, block_bytes_ - bytes_);
  c->use.live += block_bytes_;
  c->use.peak = std::max(c->use.peak, c->use.live);
}

Storage::~Storage() {
  LockedCache c(device_);
  c->living.remove(this);
  if constexpr (built_with_cuda) {
    unpoison(data_, block_bytes_);
    if (device_ == Device::cuda) cuda::examine(data_, bytes_, block_bytes_);
  }
  poison(data_, block_bytes_);
  (captured_ ? c->captured : c->common).give_back(data_, block_bytes_);
  c->use.live -= block_bytes_;
}

std::vector<MemoryUser> memory_users(Device device) {
  LockedCache c(device);
  auto users = std::make_unique<StorageList::Users>();
  c->living.sum_by_owner(*users);
  return largest_first(*users);
}

std::vector<MemoryUser> memory_users_at_failure(Device device) {
  return largest_first(LockedCache(device)->at_failure);
}

void make_room() {
  if (!is_allocating) {
    LockedCache c;
    if (c->release() > 0) return;
    c->living.sum_by_owner(c->at_failure);
    shortage = Device::cpu;
  }
  throw std::bad_alloc();
}

Device last_shortage() { return shortage; }

MemoryUse memory_use(Device device) { return LockedCache(device)->use; }

void reset_peak(Device device) {
  LockedCache c(device);
  c->use.peak = c->use.live;
}

void cap_memory(int64_t bytes, Device device) {
  LockedCache c(device);
  c->cap = bytes;
  if (c->is_host) host_cap = bytes;
}

HeapPastCap::HeapPastCap(int64_t bytes, int64_t used, int64_t cap) noexcept {
  text_[0] = '\0';
  try {
    std::strncat(text_, shortage_text(Device::cpu, bytes, used, cap).c_str(), sizeof text_ - 1);
  } catch (const std::exception&) {
    std::strncat(text_, no_memory_at_all, sizeof text_ - 1);
  }
}

std::string out_of_memory_text(const std::bad_alloc& error) {
  const auto* past = dynamic_cast<const HeapPastCap*>(&error);
  return past != nullptr ? past->what() : no_memory_at_all;
}

void take_heap(int64_t bytes) {
  const auto is_past = [] { return host_cap != 0 && heap_taken + host_reserved > host_cap + heap_reserve; };
  heap_taken += bytes;
  if (!is_past() || is_allocating) return;
  int64_t used = 0;
  {
    LockedCache c;
    c->release();
    if (!is_past()) return;
    heap_taken -= bytes;
    c->living.sum_by_owner(c->at_failure);
    shortage = Device::cpu;
    used = c->use.live + c->heap();
  }
  throw HeapPastCap(bytes, used, host_cap);
}

void give_heap(int64_t bytes) noexcept { heap_taken -= bytes; }

int64_t heap_bytes() { return heap_taken; }

int64_t heap_left() {
  constexpr int64_t unlimited = int64_t{1} << 60;
  return host_cap == 0 || heap_taken == 0 ? unlimited : host_cap - host_reserved - heap_taken;
}

void release_cached(Device device) {
  if (device != Device::cpu) synchronize(device);  // freed memory must not be in use
  LockedCache(device)->release();
}

}  // namespace heed
