// Caches constant tables on a device.
#include "heed/core/constant_table.h"

#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "heed/core/cuda/module/module.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// The most recently used tables of a device, found by their dtype and bytes.
class TableCache {
 public:
  /// The table on this device, copied there unless it is cached.
  Tensor on(Device device, const Tensor& table) {
    std::string key(1, static_cast<char>(table.dtype()));
    key.append(static_cast<const char*>(table.raw()), static_cast<size_t>(table.bytes()));
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      by_recency_.splice(by_recency_.begin(), by_recency_, found->second);
      return found->second->table;
    }
    by_recency_.push_front({std::move(key), view::reshape(table, Shape{table.size()}).to(device)});
    entries_.emplace(by_recency_.front().key, by_recency_.begin());
    bytes_ += table.bytes();
    for (; bytes_ > max_bytes && by_recency_.size() > 1; by_recency_.pop_back()) {
      bytes_ -= by_recency_.back().table.bytes();
      entries_.erase(by_recency_.back().key);
    }
    return by_recency_.front().table;
  }

 private:
  static constexpr int64_t max_bytes = int64_t{256} << 20;
  struct Entry {
    std::string key;  // dtype and bytes
    Tensor table;
  };
  std::mutex mutex_;
  std::list<Entry> by_recency_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> entries_;
  int64_t bytes_ = 0;
};

}  // namespace

bool step_is_recorded() {
  if constexpr (built_with_cuda) return cuda::is_open() && cuda::capturing();
  return false;
}

void keep_for_replays([[maybe_unused]] const Tensor& x) {
  if constexpr (built_with_cuda) {
    if (x.device() == Device::cuda) cuda::hold(x.storage());
  }
}

Tensor constant_table(const Tensor& values, Device device, DType dtype) {
  Tensor table = values;
  if (values.dtype() != dtype) {
    table = Tensor(values.shape(), dtype, Device::cpu);
    launch<kernel::Copy>(Device::cpu, values, table);
  }
  if (device == Device::cpu || table.size() == 0) return table.to(device);
  // Never destroyed: the device may be gone before static objects are.
  static auto* tables = new TableCache;
  const Tensor cached = tables->on(device, table);
  keep_for_replays(cached);
  return view::reshape(cached, values.shape());
}

}  // namespace heed
