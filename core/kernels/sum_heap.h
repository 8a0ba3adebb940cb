// Sampling in proportion to masses that change, in logarithmic time. Casinoformer, sum heap.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heed::kernel {

/// Slots with masses in a complete binary tree of sums. Sums are made anew from their children at each
/// change, so rounding does not build up, and a slot without mass is never drawn.
class SumHeap {
 public:
  explicit SumHeap(int64_t slots)
      : slots_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(slots > 1 ? slots : 1)))),
        sums_(static_cast<size_t>(2 * slots_)) {}

  /// All masses become zero.
  void clear() { sums_.assign(sums_.size(), 0.0); }
  double total() const { return sums_[1]; }
  /// mass >= 0
  void set(int64_t slot, double mass) {
    size_t at = static_cast<size_t>(slots_ + slot);
    sums_[at] = mass;
    while (at > 1) {
      at /= 2;
      sums_[at] = sums_[2 * at] + sums_[2 * at + 1];
    }
  }
  /// The slot that a number 0 <= u < 1 falls on when slots take shares of [0, 1) by their masses. total() >
  /// 0.
  int64_t draw(double u) const {
    double rest = u * total();
    size_t at = 1;
    while (at < static_cast<size_t>(slots_)) {
      at *= 2;
      // Rounding may carry `rest` past the last share: never into a side without mass.
      if (sums_[at] > 0 && (rest < sums_[at] || sums_[at + 1] <= 0)) continue;
      rest -= sums_[at];
      ++at;
    }
    return static_cast<int64_t>(at) - slots_;
  }

 private:
  int64_t slots_;
  std::vector<double> sums_;  // [1] is the total, [slots_ + s] the mass of slot s
};

}  // namespace heed::kernel
