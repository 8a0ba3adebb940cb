// The one counter.
#include "core/count.h"

namespace heed {

std::atomic<int64_t>& Count::flops() {
  static std::atomic<int64_t> total{0};
  return total;
}

}  // namespace heed
