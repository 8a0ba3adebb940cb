// Baselines on examples small enough to count by hand.
#include "heed/data/baselines.h"

#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// Pairs of texts with their labels.
Sequences pairs_of(const std::vector<std::tuple<std::string, std::string, uint8_t>>& all) {
  Sequences out;
  out.parts = 2;
  for (const auto& [one, other, label] : all) {
    out.add(one);
    out.add(other);
    out.labels.push_back(label);
  }
  return out;
}

}  // namespace

TEST_CASE("baselines: a threshold on cosines lies between values, not inside a run of equal ones") {
  // All cosines are 1: no threshold parts them, and the commonest label is 1.
  const Sequences equal =
      pairs_of({{"a", "a", 1}, {"b", "b", 0}, {"c", "c", 1}, {"d", "d", 0}, {"e", "e", 1}});
  CHECK(histogram_cosine(equal, equal) == Approx(3.0 / 5));
  // Above 0 lie three of label 1 and one of label 0.
  const Sequences parted = pairs_of({{"a", "b", 0},
                                     {"c", "c", 1},
                                     {"a", "c", 0},
                                     {"d", "d", 0},
                                     {"e", "e", 1},
                                     {"b", "c", 0},
                                     {"f", "f", 1}});
  CHECK(histogram_cosine(parted, parted) == Approx(6.0 / 7));
}
