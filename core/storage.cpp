// The caching allocator.
#include "core/storage.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>

#include "core/arena.h"
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

/// Small sizes are rounded up to eight steps a power of two, so that at most an eighth is wasted.
int64_t room_for(int64_t bytes) {
  if (bytes > large) return (bytes + Arena::page - 1) / Arena::page * Arena::page;
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(bytes, 64));
  const auto step = std::max<uint64_t>(std::bit_floor(wanted) / 8, 64);
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

struct Cache {
  std::mutex mutex;
  std::unordered_map<int64_t, std::vector<void*>> small;  // free blocks by size
  Arena arena;
  StorageList living;
  StorageList::Users at_failure;
  MemoryUse use;
  int64_t small_reserved = 0, small_mapped = 0, cap = 0;

  void count() {
    use.reserved = small_reserved + arena.reserved();
    use.mapped = small_mapped + arena.mapped();
  }

  int64_t release() {
    int64_t given = arena.release();
    for (auto& [size, blocks] : small) {
      for (void* block : blocks) {
        permit(block, size);
        std::free(block);
        given += size;
        small_reserved -= size;
      }
      blocks.clear();
    }
    count();
    return given;
  }

  void* take(int64_t room) {
    const int64_t allowance = cap == 0 ? INT64_MAX : cap - use.reserved;
    void* block = nullptr;
    if (room > large) {
      block = arena.take(room, allowance);
    } else if (auto& blocks = small[room]; !blocks.empty()) {
      block = blocks.back();
      blocks.pop_back();
    } else if (room <= allowance) {
      block = std::aligned_alloc(64, static_cast<size_t>(room));
      if (block != nullptr) {
        small_reserved += room;
        ++small_mapped;
      }
    }
    count();
    return block;
  }
};

// Never destroyed: tensors in static objects may be freed after main returns.
Cache& cache() {
  static auto* one = new Cache;
  return *one;
}

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

Storage::Storage(int64_t bytes, Device device)
    : bytes_(bytes), room_(room_for(bytes)), owner_(memory_owner), device_(device) {
  if (device != Device::cpu)
    fail(Fault::device, "storage: no memory on ", to_string(device), ": ", why_no_cuda(), ".");
  Cache& c = cache();
  const Lock lock(c);
  data_ = c.take(room_);
  if (data_ == nullptr && c.release() > 0) data_ = c.take(room_);
  if (data_ == nullptr) {
    c.living.gather(c.at_failure);
    fail(Fault::memory, "memory: ", bytes, " bytes are asked for while ", c.use.live, " are in use",
         c.cap > 0 ? text(" and the cap is ", c.cap) : std::string(),
         ". Use a smaller batch, length or model.");
  }
  c.living.add(this);
  permit(data_, room_);
  forbid(static_cast<char*>(data_) + bytes_, room_ - bytes_);
  c.use.live += room_;
  c.use.peak = std::max(c.use.peak, c.use.live);
}

Storage::~Storage() {
  Cache& c = cache();
  const Lock lock(c);
  c.living.remove(this);
  forbid(data_, room_);
  if (room_ > large)
    c.arena.give(data_, room_);
  else
    c.small[room_].push_back(data_);
  c.use.live -= room_;
}

std::vector<MemoryUser> memory_users() {
  const Lock lock(cache());
  auto users = std::make_unique<StorageList::Users>();
  cache().living.gather(*users);
  return largest_first(*users);
}

std::vector<MemoryUser> memory_users_at_failure() {
  const Lock lock(cache());
  return largest_first(cache().at_failure);
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

MemoryUse memory_use(Device) {
  const Lock lock(cache());
  return cache().use;
}

void reset_peak(Device) {
  const Lock lock(cache());
  cache().use.peak = cache().use.live;
}

void cap_memory(int64_t bytes, Device) {
  const Lock lock(cache());
  cache().cap = bytes;
}

void release_cached(Device) {
  const Lock lock(cache());
  cache().release();
}

}  // namespace heed
