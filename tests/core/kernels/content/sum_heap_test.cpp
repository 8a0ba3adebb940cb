// Tests core/kernels/content/sum_heap.h: sampling by the current masses.
#include "heed/core/kernels/content/sum_heap.h"

#include <cmath>
#include <set>

#include "heed/core/random.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using kernel::SumHeap;

}  // namespace

TEST_CASE("sum_heap: slots take shares of 0 to 1 by their masses") {
  SumHeap heap(5);
  const double masses[] = {0.5, 0, 0.25, 0.125, 0.125};
  for (int64_t s = 0; s < 5; ++s) heap.set(s, masses[s]);
  CHECK(heap.total() == 1);
  CHECK(heap.draw(0) == 0);
  CHECK(heap.draw(0.4999) == 0);
  CHECK(heap.draw(0.5) == 2);
  CHECK(heap.draw(0.7499) == 2);
  CHECK(heap.draw(0.75) == 3);
  CHECK(heap.draw(0.875) == 4);
  CHECK(heap.draw(1 - 0x1p-53) == 4);
  heap.set(2, 0);
  CHECK(heap.total() == 0.75);
  CHECK(heap.draw(0.67) == 3);
  heap.clear();
  CHECK(heap.total() == 0);
}

TEST_CASE("sum_heap: a slot without mass is never drawn, whatever rounding does") {
  Rng rng(3);
  SumHeap heap(37);
  double masses[37];
  for (int round = 0; round < 2000; ++round) {
    const int64_t slot = rng.below(37);
    masses[slot] = rng.uniform() < 0.5 ? 0 : std::exp(60 * (rng.uniform() - 0.5));
    if (round == 0) {
      for (double& mass : masses) mass = 0;
      masses[slot] = 1;
    }
    heap.set(slot, masses[slot]);
    if (heap.total() == 0) continue;
    for (const double u : {0.0, rng.uniform(), 1 - 0x1p-53}) CHECK(masses[heap.draw(u)] > 0);
  }
}

TEST_CASE("sum_heap: frequencies of draws follow the masses (chi-square)") {
  constexpr int64_t slots = 11, draws = 40000;
  SumHeap heap(slots);
  double masses[slots], total = 0;
  for (int64_t s = 0; s < slots; ++s) {
    heap.set(s, 17);  // what was there before leaves no trace
    total += masses[s] = static_cast<double>((s * 7) % slots);
  }
  for (int64_t s = 0; s < slots; ++s) heap.set(s, masses[s]);
  int64_t seen[slots] = {};
  Rng rng(5);
  for (int64_t n = 0; n < draws; ++n) ++seen[heap.draw(rng.uniform())];
  double chi_square = 0;
  for (int64_t s = 0; s < slots; ++s) {
    const double expected = masses[s] / total * draws;
    if (expected == 0) {
      CHECK(seen[s] == 0);
      continue;
    }
    chi_square +=
        (static_cast<double>(seen[s]) - expected) * (static_cast<double>(seen[s]) - expected) / expected;
  }
  CHECK(chi_square < 27.9);  // 9 degrees of freedom, one in a thousand
}

TEST_CASE("sum_heap: without replacement nothing comes twice") {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    SumHeap heap(13);
    for (int64_t s = 0; s < 13; ++s) heap.set(s, std::exp(20 * rng.uniform()));
    std::set<int64_t> drawn;
    for (int n = 0; n < 13; ++n) {
      const int64_t slot = heap.draw(rng.uniform());
      drawn.insert(slot);
      heap.set(slot, 0);
    }
    CHECK(drawn.size() == 13);
    CHECK(heap.total() == 0);
  }
}

}  // namespace heed
