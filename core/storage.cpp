// The caching allocator.
#include "core/storage.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>

#include "core/arena.h"
#include "core/bytes_text.h"
#include "core/cuda/memory.h"
#include "core/error.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace heed {

/// The list of all that live.
struct StorageList {
  Storage* first = nullptr;

  void add(Storage* one) {
    one->after_ = first;
    if (first != nullptr) first->before_ = one;
    first = one;
  }
  void remove(Storage* one) {
    (one->before_ != nullptr ? one->before_->after_ : first) = one->after_;
    if (one->after_ != nullptr) one->after_->before_ = one->before_;
  }

  /// Needs no memory of its own.
  struct Users {
    MemoryUser list[500];
    int64_t count = 0;
  };
  void gather(Users& users) const {
    users.count = 0;
    for (const Storage* one = first; one != nullptr; one = one->after_) {
      MemoryUser* const end = users.list + users.count;
      MemoryUser* user =
          std::find_if(users.list, end, [&](const MemoryUser& known) { return known.owner == one->owner_; });
      if (user == end) {
        if (users.count == 500) continue;
        ++users.count;
        *user = {one->owner_, 0};
      }
      user->bytes += one->room_;
    }
  }
};

namespace {

// From here on, blocks are whole pages of the arena, which batches of all shapes share. Smaller ones are kept
// for requests of their own size: together they must stay few beside the rest.
constexpr int64_t large = int64_t{16} << 10;
// Of small blocks, on a device: what its copies and vector loads like; and what they are cut from.
constexpr int64_t device_step = 256, slab_bytes = int64_t{64} << 10;

/// Small sizes are rounded up to eight steps a power of two, so that at most an eighth is wasted.
int64_t room_for(int64_t bytes, Device device) {
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) bytes += cuda::guard_bytes;
  }
  if (bytes > large) return (bytes + Arena::page - 1) / Arena::page * Arena::page;
  const int64_t least = device == Device::cpu ? 64 : device_step;
  const auto wanted = static_cast<uint64_t>(std::max(bytes, least));
  const auto step = std::max<uint64_t>(std::bit_floor(wanted) / 8, static_cast<uint64_t>(least));
  return static_cast<int64_t>((wanted + step - 1) / step * step);
}

// Cached memory must not be touched by anyone: the address sanitizer is told so.
void forbid([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, static_cast<size_t>(bytes));
#endif
}

void permit([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, static_cast<size_t>(bytes));
#endif
}

const MemorySource& source_of(Device device) {
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) return cuda::memory_source();
  }
  return host_memory();
}

/// Blocks that are free, small ones by size.
struct Pool {
  explicit Pool(Device from) : device(from), arena(source_of(from)) {}

  int64_t reserved() const { return small_reserved + arena.reserved(); }
  int64_t mapped() const { return small_mapped + arena.mapped(); }

  /// On a device small blocks are cut from the arena and stay cut.
  int64_t release() {
    int64_t given = arena.release();
    if (device != Device::cpu) return given;
    for (auto& [size, blocks] : small) {
      for (void* block : blocks) {
        permit(block, size);
        std::free(block);
        given += size;
        small_reserved -= size;
      }
      blocks.clear();
    }
    return given;
  }

  void* take(int64_t room, int64_t allowance) {
    if (room > large) return arena.take(room, allowance);
    auto& blocks = small[room];
    if (blocks.empty() && device == Device::cuda) {
      auto* slab = static_cast<char*>(arena.take(slab_bytes, allowance));
      if (slab == nullptr) return nullptr;
      for (int64_t at = slab_bytes / room * room; at > 0; at -= room) blocks.push_back(slab + at - room);
    }
    if (!blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      return block;
    }
    if (room > allowance) return nullptr;
    void* block = std::aligned_alloc(64, static_cast<size_t>(room));
    if (block != nullptr) {
      small_reserved += room;
      ++small_mapped;
    }
    return block;
  }

  void give(void* block, int64_t room) {
    if (room > large)
      arena.give(block, room);
    else
      small[room].push_back(block);
  }

  Device device;
  std::unordered_map<int64_t, std::vector<void*>> small;  // free blocks by size
  Arena arena;
  int64_t small_reserved = 0, small_mapped = 0;
};

/// The memory of one device.
struct Cache {
  explicit Cache(Device device) : common(device), captured(device) {}

  std::mutex mutex;
  Pool common;
  Pool captured;  // that of steps which are replayed
  StorageList living;
  StorageList::Users at_failure;
  MemoryUse use;
  int64_t cap = 0;

  void count() {
    use.reserved = common.reserved() + captured.reserved();
    use.mapped = common.mapped() + captured.mapped();
  }

  int64_t release() {
    const int64_t given = common.release() + captured.release();
    count();
    return given;
  }

  void* take(int64_t room, bool of_captured) {
    const int64_t allowance = cap == 0 ? INT64_MAX : cap - use.reserved;
    void* block = (of_captured ? captured : common).take(room, allowance);
    count();
    return block;
  }
};

// Never destroyed: tensors in static objects may be freed after main returns.
Cache& cache(Device device = Device::cpu) {
  static auto* host = new Cache(Device::cpu);
  if (device == Device::cpu) return *host;
  if constexpr (built_with_cuda) {
    static auto* one = new Cache(Device::cuda);
    return *one;
  }
  fail(Fault::device, "storage: no memory on ", to_string(device), ": ", why_no_cuda(), ".");
}

thread_local int capturing = 0;

/// Says to make_room(), which may be called from within, that the allocator is at work in this thread.
thread_local bool at_work = false;

class Lock {
 public:
  explicit Lock(Cache& c) : lock_(c.mutex) { at_work = true; }
  ~Lock() { at_work = false; }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
};

std::vector<MemoryUser> largest_first(const StorageList::Users& users) {
  std::vector<MemoryUser> out(users.list, users.list + users.count);
  std::stable_sort(out.begin(), out.end(),
                   [](const MemoryUser& a, const MemoryUser& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace

CapturedMemory::CapturedMemory() { ++capturing; }
CapturedMemory::~CapturedMemory() { --capturing; }

Storage::Storage(int64_t bytes, Device device)
    : bytes_(bytes),
      room_(room_for(bytes, device)),
      owner_(memory_owner),
      device_(device),
      captured_(capturing > 0 && device == Device::cuda) {
  Cache& c = cache(device);
  const Lock lock(c);
  data_ = c.take(room_, captured_);
  if (data_ == nullptr && c.release() > 0) data_ = c.take(room_, captured_);
  if (data_ == nullptr) {
    c.living.gather(c.at_failure);
    fail(Fault::memory, device == Device::cpu ? "memory: " : "memory of the GPU: ", bytes_text(bytes),
         " are asked for while ", bytes_text(c.use.live), " are in use",
         c.cap > 0 ? text(" and the cap is ", bytes_text(c.cap)) : std::string(),
         ". Use a smaller batch, length or model.");
  }
  c.living.add(this);
  permit(data_, room_);
  if constexpr (built_with_cuda) {
    if (device == Device::cuda) cuda::prepare(data_, bytes_, room_);
  }
  forbid(static_cast<char*>(data_) + bytes_, room_ - bytes_);
  c.use.live += room_;
  c.use.peak = std::max(c.use.peak, c.use.live);
}

Storage::~Storage() {
  Cache& c = cache(device_);
  const Lock lock(c);
  c.living.remove(this);
  if constexpr (built_with_cuda) {
    permit(data_, room_);
    if (device_ == Device::cuda) cuda::examine(data_, bytes_, room_);
  }
  forbid(data_, room_);
  (captured_ ? c.captured : c.common).give(data_, room_);
  c.use.live -= room_;
}

std::vector<MemoryUser> memory_users(Device device) {
  Cache& c = cache(device);
  const Lock lock(c);
  auto users = std::make_unique<StorageList::Users>();
  c.living.gather(*users);
  return largest_first(*users);
}

std::vector<MemoryUser> memory_users_at_failure(Device device) {
  Cache& c = cache(device);
  const Lock lock(c);
  return largest_first(c.at_failure);
}

void make_room() {
  if (!at_work) {
    Cache& c = cache();
    const Lock lock(c);
    if (c.release() > 0) return;
    c.living.gather(c.at_failure);
  }
  throw std::bad_alloc();
}

MemoryUse memory_use(Device device) {
  Cache& c = cache(device);
  const Lock lock(c);
  return c.use;
}

void reset_peak(Device device) {
  Cache& c = cache(device);
  const Lock lock(c);
  c.use.peak = c.use.live;
}

void cap_memory(int64_t bytes, Device device) {
  Cache& c = cache(device);
  const Lock lock(c);
  c.cap = bytes;
}

void release_cached(Device device) {
  Cache& c = cache(device);
  if (device != Device::cpu) synchronize(device);  // what is given back must not be in use
  const Lock lock(c);
  c.release();
}

}  // namespace heed
