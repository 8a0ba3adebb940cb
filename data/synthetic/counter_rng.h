// Random numbers for the generators of synthetic data.
#pragma once

#include <cstdint>

#include "heed/data/batching/shuffle.h"

namespace heed {

/// Random numbers of (seed, stream) in sequence, equal on every machine. Put each draw into a statement of
/// its own: the order in which a call's arguments are evaluated is the compiler's choice.
class CounterRng {
 public:
  /// Streams of one seed are independent.
  explicit CounterRng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  /// Uniform in 0 .. count - 1; count is at least 1.
  int64_t below(int64_t count) { return counter_below(seed_, stream_, counter_++, count); }
  /// Uniform in low .. high, inclusive.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  /// True with a probability of `percent` / 100.
  bool chance(int64_t percent) { return below(100) < percent; }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(counter_bits(seed_, stream_, counter_++) >> 11) * 0x1p-53; }
  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// A random element of an array, vector or span.
  template <class List>
  const auto& pick(const List& list) {
    return list[static_cast<decltype(list.size())>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  uint64_t seed_, stream_, counter_ = 0;
};

}  // namespace heed
