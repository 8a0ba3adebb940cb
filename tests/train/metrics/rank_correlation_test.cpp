// Rank correlations that can be computed by hand.
#include "heed/train/metrics/rank_correlation.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("rank correlation: order counts, not size, and equal values share a rank") {
  CHECK(rank_correlation({1, 2, 3}, {-5, 0, 1000}) == Approx(1));
  CHECK(rank_correlation({1, 2, 3}, {9, 8, -7}) == Approx(-1));
  CHECK(rank_correlation({1, 2, 3, 4}, {1, 3, 2, 4}) == Approx(0.8));          // 1 - 6 * 2 / (4 * 15)
  CHECK(rank_correlation({1, 2, 2, 3}, {1, 2, 3, 4}) == Approx(0.948683298));  // 4.5 / sqrt(4.5 * 5)
  CHECK(rank_correlation({1, 1, 1}, {1, 2, 3}) == 0);
  CHECK(rank_correlation({}, {}) == 0);
  CHECK_THROWS_WITH(rank_correlation({1}, {}), Catch::Contains("1 and 0 values"));
}
