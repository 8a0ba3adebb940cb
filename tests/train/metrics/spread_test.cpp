// Means over seeds, and intervals of differences.
#include "heed/train/metrics/spread.h"

#include <cmath>

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("spread: mean and sample deviation, with two digits of the deviation") {
  const Spread three = spread_of({1, 2, 6});
  CHECK(three.mean == Approx(3));
  CHECK(three.deviation == Approx(std::sqrt(7)));
  CHECK(three.count == 3);
  CHECK(to_string(spread_of({0.901, 0.911, 0.906})) == "0.9060 ± 0.0050");
  CHECK(to_string(spread_of({12, 20})) == "16.0 ± 5.7");
  CHECK(to_string(spread_of({0.25})) == "0.25");
  CHECK(to_string(spread_of({})).empty());
  CHECK(std::isnan(spread_of({}).mean));
}

TEST_CASE("spread: bounds of Student's distribution as in printed tables") {
  for (const auto& [degrees, bound] : {std::pair<int64_t, double>{1, 12.706},
                                       {2, 4.303},
                                       {3, 3.182},
                                       {4, 2.776},
                                       {5, 2.571},
                                       {10, 2.228},
                                       {29, 2.045},
                                       {120, 1.980},
                                       {1000000, 1.960}}) {
    CAPTURE(degrees);
    CHECK(student_bound(degrees) == Approx(bound).margin(5e-4));
  }
}

TEST_CASE("spread: an interval is Welch's, with the degrees of freedom rounded down") {
  // Means 5 and 2; variances of the means 1 and 1/3; degrees (4/3)^2 / (1/2 + 1/18) = 3.2.
  const auto found = difference_of(spread_of({4, 4, 7}), spread_of({1, 2, 3}));
  REQUIRE(found);
  CHECK(found->difference == Approx(3));
  CHECK(found->reach == Approx(student_bound(3) * std::sqrt(4.0 / 3)));
  CHECK_FALSE(found->is_clear());
  CHECK(difference_of(spread_of({4, 4.1, 4.2}), spread_of({1, 1.1, 1.2}))->is_clear());
  CHECK(difference_of(spread_of({1, 1.1, 1.2}), spread_of({4, 4.1, 4.2}))->is_clear());
}

TEST_CASE("spread: one seed has no interval, and equal values have one of no width") {
  CHECK_FALSE(difference_of(spread_of({1}), spread_of({1, 2})));
  CHECK_FALSE(difference_of(spread_of({1, 2}), spread_of({})));
  const auto same = difference_of(spread_of({1, 1}), spread_of({1, 1}));
  REQUIRE(same);
  CHECK(same->reach == 0);
  CHECK_FALSE(same->is_clear());
  CHECK(difference_of(spread_of({2, 2}), spread_of({1, 1}))->is_clear());
}
