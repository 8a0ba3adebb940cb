// Sampling in proportion to masses that change, in logarithmic time. Casinoformer, sum heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heed/core/bits.h"

namespace heed::kernel {

/// Slots with masses in a complete binary tree of sums. Sums are made anew from their children at each
/// change, so rounding does not build up, and a slot without mass is never drawn.
struct SumSlots {
  double* sums;   ///< [1] is the total, [slots + s] the mass of slot s
  int64_t slots;  ///< a power of two

  /// Slots of a heap for at least this many; its sums are twice as many.
  HEED_BOTH static int64_t enough(int64_t wanted) {
    return static_cast<int64_t>(power_of_two(static_cast<uint64_t>(wanted > 1 ? wanted : 1)));
  }
  HEED_BOTH double total() const { return sums[1]; }
  /// mass >= 0
  HEED_BOTH void set(int64_t slot, double mass) const {
    int64_t at = slots + slot;
    sums[at] = mass;
    while (at > 1) {
      at /= 2;
      sums[at] = sums[2 * at] + sums[2 * at + 1];
    }
  }
  /// The slot that a number 0 <= u < 1 falls on when slots take shares of [0, 1) by their masses. total() >
  /// 0.
  HEED_BOTH int64_t draw(double u) const {
    double rest = u * total();
    int64_t at = 1;
    while (at < slots) {
      at *= 2;
      // Rounding may carry `rest` past the last share: never into a side without mass.
      if (sums[at] > 0 && (rest < sums[at] || sums[at + 1] <= 0)) continue;
      rest -= sums[at];
      ++at;
    }
    return at - slots;
  }
};

/// The same with memory of its own.
class SumHeap {
 public:
  explicit SumHeap(int64_t slots)
      : sums_(static_cast<size_t>(2 * SumSlots::enough(slots))),
        heap_{sums_.data(), SumSlots::enough(slots)} {}
  SumHeap(const SumHeap&) = delete;
  SumHeap& operator=(const SumHeap&) = delete;

  /// All masses become zero.
  void clear() { sums_.assign(sums_.size(), 0.0); }
  double total() const { return heap_.total(); }
  void set(int64_t slot, double mass) { heap_.set(slot, mass); }
  int64_t draw(double u) const { return heap_.draw(u); }

 private:
  std::vector<double> sums_;
  SumSlots heap_;
};

}  // namespace heed::kernel
