// Sampling in proportion to masses that change, in logarithmic time. Casinoformer, sum heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heed/core/bits.h"

namespace heed::kernel {

/// A complete binary tree of sums in the caller's memory: its leaves are the masses of slots, each other node
/// is the sum of its children. set() computes the sums above the slot anew from their children, so rounding
/// errors do not accumulate, and draw() never returns a slot without mass.
struct SumHeapView {
  double*
      sums;  ///< node n has the children 2 n and 2 n + 1: [1] is the total, [slots + s] the mass of slot s
  int64_t slots;  ///< a power of two

  /// Number of slots of a heap for at least `min_slots`; it has twice as many sums.
  HEED_BOTH static int64_t num_slots(int64_t min_slots) {
    return static_cast<int64_t>(power_of_two(static_cast<uint64_t>(min_slots > 1 ? min_slots : 1)));
  }
  HEED_BOTH double total() const { return sums[1]; }
  /// Sets the mass >= 0 of a slot.
  HEED_BOTH void set(int64_t slot, double mass) const {
    int64_t node = slots + slot;
    sums[node] = mass;
    while (node > 1) {
      node /= 2;
      sums[node] = sums[2 * node] + sums[2 * node + 1];
    }
  }
  /// The slot drawn by a uniform u, 0 <= u < 1: slots divide [0, 1), in their order, into intervals in
  /// proportion to their masses, and u lies in that of the result. Needs total() > 0.
  HEED_BOTH int64_t draw(double u) const {
    double offset = u * total();  // within the interval of `node`
    int64_t node = 1;
    while (node < slots) {
      node *= 2;
      // Rounding may carry the offset past the last interval: never descend into a child without mass.
      if (sums[node] > 0 && (offset < sums[node] || sums[node + 1] <= 0)) continue;
      offset -= sums[node];
      ++node;
    }
    return node - slots;
  }
};

/// A SumHeapView that owns its memory.
class SumHeap {
 public:
  explicit SumHeap(int64_t slots)
      : sums_(static_cast<size_t>(2 * SumHeapView::num_slots(slots))),
        heap_{sums_.data(), SumHeapView::num_slots(slots)} {}
  SumHeap(const SumHeap&) = delete;
  SumHeap& operator=(const SumHeap&) = delete;

  /// Sets all masses to zero.
  void clear() { sums_.assign(sums_.size(), 0.0); }
  double total() const { return heap_.total(); }
  void set(int64_t slot, double mass) { heap_.set(slot, mass); }
  int64_t draw(double u) const { return heap_.draw(u); }

 private:
  std::vector<double> sums_;
  SumHeapView heap_;
};

}  // namespace heed::kernel
