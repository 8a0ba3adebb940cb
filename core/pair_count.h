// Pairs of a query and a key counted by attention kernels: what a sparse pattern keeps, beside a dense map.
#pragma once

#include <atomic>
#include <cstdint>

namespace heed {

/// Pairs that forward passes of dense and block attention were asked for since the last reset, over all
/// heads.
struct PairCount {
  static std::atomic<int64_t>& total();  ///< one in the program, whichever kernels add to it
  /// Called by forward passes, from any thread.
  static void add(int64_t pairs) { total().fetch_add(pairs, std::memory_order_relaxed); }
  static void reset() { total().store(0); }  ///< begins a count at 0
};

}  // namespace heed
