// Charts of logged series.
#include "heed/train/report/run_charts.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("run charts: each score of the validations is drawn, those of a task of one's own too") {
  const std::vector<MetricSeries> logged{
      {"loss", {1, 2, 3}, {3, 2, 1}}, {"valid_loss", {2}, {2.5}},           {"valid_estimate", {2}, {2.4}},
      {"valid_bleu", {2}, {31}},      {"valid_word_error", {2, 3}, {9, 8}}, {"valid_accuracy", {2}, {0.5}}};
  const std::vector<Chart> charts = score_charts(logged, 3);
  REQUIRE(charts.size() == 3);
  CHECK(charts[0].title == "BLEU");
  CHECK(charts[0].max_y == 100);
  CHECK(charts[1].title == "Word error");
  CHECK(charts[1].max_y == INFINITY);
  CHECK(charts[1].mark == 3);
  REQUIRE(charts[1].series.size() == 1);
  CHECK(charts[1].series[0].name == "validation");
  CHECK(charts[1].series[0].x == std::vector<double>{2, 3});
  CHECK(charts[1].series[0].y == std::vector<double>{9, 8});
  CHECK(charts[2].title == "Accuracy");
}

TEST_CASE("run charts: series that were not logged are left out") {
  const std::vector<MetricSeries> logged{{"loss", {1, 2}, {3, 2}}};
  const Chart chart = chart_of(logged, "Loss", {{"loss", "training"}, {"valid_loss", "validation"}}, NAN);
  REQUIRE(chart.series.size() == 1);
  CHECK(chart.series[0].name == "training");
  CHECK(score_charts(logged, NAN).empty());
}
