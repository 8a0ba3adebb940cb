// Floating-point operations counted by the kernels; read by the tests of declared costs.
#pragma once

#include <atomic>
#include <cstdint>

namespace heed {

/// Operations since the last reset: two for a multiply-add, one for each element of anything lighter.
struct Count {
  static std::atomic<int64_t>& flops();  ///< one in the program, whichever kernels add to it
  static void add(int64_t flops) { Count::flops().fetch_add(flops, std::memory_order_relaxed); }
  static void reset() { flops().store(0); }
};

}  // namespace heed
