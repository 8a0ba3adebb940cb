// The counters and the log of the program, which all copies of the kernels share.
#include "heed/core/operation_count.h"

namespace heed {

std::atomic<int64_t>& Count::flops() {
  static std::atomic<int64_t> total{0};
  return total;
}

std::atomic<int64_t>& PairCount::total() {
  static std::atomic<int64_t> total{0};
  return total;
}

std::atomic<ProductLog*>& ProductLog::open() {
  static std::atomic<ProductLog*> log{nullptr};
  return log;
}

void ProductLog::note(const Product& product) {
  ProductLog* log = open();
  if (log == nullptr || product.flops() == 0) return;
  const std::lock_guard lock(log->mutex_);
  log->list_.push_back(product);
}

}  // namespace heed
