// Reproducible shuffling: known orders.
#include "heed/data/batching/shuffle.h"

#include <algorithm>

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("shuffle: the bits of a counter are fixed for ever") {
  CHECK(counter_bits(0, 0, 0) == 0x85c61a300ec70fa1u);
  CHECK(counter_bits(1, 2, 3) == 0x6e614ef2ede4f168u);
  CHECK(shuffled(10, 1234, 0) == std::vector<int64_t>{2, 1, 8, 3, 0, 6, 4, 5, 7, 9});
}

TEST_CASE("shuffle: every order is a permutation of its own") {
  for (const int64_t count : {0, 1, 2, 3, 1000}) {
    std::vector<int64_t> order = shuffled(count, 5, 0);
    CHECK(static_cast<int64_t>(order.size()) == count);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < count; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  }
  CHECK(shuffled(1000, 5, 0) != shuffled(1000, 5, 1));
  CHECK(shuffled(1000, 5, 0) != shuffled(1000, 6, 0));
}

TEST_CASE("shuffle: each value comes to each place equally often") {
  constexpr int64_t count = 5, rounds = 20000;
  int64_t seen[count][count] = {};
  for (uint64_t stream = 0; stream < rounds; ++stream) {
    const auto order = shuffled(count, 99, stream);
    for (int64_t place = 0; place < count; ++place) ++seen[place][order[static_cast<size_t>(place)]];
  }
  for (const auto& row : seen) {
    for (const int64_t times : row)
      CHECK(std::abs(times - rounds / count) < 280);  // five standard deviations
  }
}

TEST_CASE("shuffle: bounded numbers stay below their bound and reach all of it") {
  bool low = false, high = false;
  for (uint64_t i = 0; i < 1000; ++i) {
    const int64_t value = counter_below(3, 1, i, 7);
    CHECK(value >= 0);
    CHECK(value < 7);
    low = low || value == 0;
    high = high || value == 6;
    CHECK(counter_below(3, 1, i, 1) == 0);
    CHECK(counter_below(3, 1, i, int64_t{1} << 32) < (int64_t{1} << 32));
  }
  CHECK(low);
  CHECK(high);
}
