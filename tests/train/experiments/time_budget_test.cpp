// Durations as people type them.
#include "heed/train/experiments/time_budget.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("budget: hours, minutes and seconds, each once and in order") {
  CHECK(duration_seconds("90s", "--budget") == 90);
  CHECK(duration_seconds("30m", "--budget") == 1800);
  CHECK(duration_seconds("2h", "--budget") == 7200);
  CHECK(duration_seconds("1h30m", "--budget") == 5400);
  CHECK(duration_seconds("1h1m1s", "--budget") == 3661);
  CHECK(duration_seconds("2h5s", "--budget") == 7205);
}

TEST_CASE("budget: what is no duration is refused by the legal forms") {
  for (const char* bad : {"", "90", "s", "h", "0s", "0h0m", "-5s", "1.5h", "5d", "30m1h", "1s1s", "2 h",
                          "2h ", "1h30", "nan", "9999999s", "99999999999999999999999s"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH(duration_seconds(bad, "--budget"), Catch::Contains("--budget = '" + std::string(bad)) &&
                                                             Catch::Contains("90s, 30m, 2h or 1h30m"));
  }
}

TEST_CASE("budget: without one there is no end, and one of no length is spent") {
  CHECK_FALSE(TimeBudget().spent());
  CHECK_FALSE(TimeBudget(1000).spent());
  CHECK(TimeBudget(0).spent());
}
