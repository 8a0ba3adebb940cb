// Charts for a terminal, star by star.
#include "heed/train/report/chart.h"

#include <cmath>

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("chart text: points lie where their values say, the mark is a column") {
  const Chart chart{.title = "Loss",
                    .series = {{"a", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}}},
                    .mark = 9};
  CHECK(chart_text(chart, 20, 4) ==
        "Loss\n"
        "       9 |**       |\n"
        "         |  ***    |\n"
        "         |     *** |\n"
        "       0 |        **\n"
        "         +----------\n"
        "          0        9\n"
        "          step\n");
}

TEST_CASE("chart text: a logarithmic axis, means of a column, values that are not finite") {
  const Chart chart{.title = "",
                    .series = {{"a", {1e-4, 1e-3, 1e-3, 1e-2, 1e-1}, {0, 1, 3, NAN, 4}}},
                    .x_label = "rate",
                    .logarithmic_x = true};
  CHECK(chart_text(chart, 20, 3) ==
        "       4 |         *\n"
        "         |   *\n"
        "       0 |*\n"
        "         +----------\n"
        "          1e-4   0.1\n"
        "          rate\n");
  CHECK(chart_text({.title = "none", .series = {{"a", {1, 2}, {NAN, INFINITY}}}}, 40, 5).empty());
  CHECK_THROWS_WITH(chart_text({.title = "", .series = {{"a", {1, 2}, {1}}}}, 40, 5),
                    containing("has 2 x and 1"));
}
