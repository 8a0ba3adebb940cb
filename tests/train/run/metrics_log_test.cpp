// Metrics: written lines, lossless truncation, series, and the CSV table.
#include "heed/train/run/metrics_log.h"

#include <unistd.h>

#include <cmath>
#include <limits>

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/synced_files.h"

using namespace heed;

TEST_CASE("metrics log: a line is one JSON object with short numbers") {
  Scratch scratch;
  MetricsLog log(scratch / "metrics.jsonl", scratch / "tb");
  log.log(1, {{"loss", 2.5}, {"learning_rate", static_cast<double>(0.1f)}});
  log.log(2, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"odd \" name", 1.0 / 3}});
  synced();
  log.sync();
  const std::vector<std::string> forced = synced();
  REQUIRE(forced.size() == 2);
  CHECK(forced[0] == (scratch / "metrics.jsonl").string());
  CHECK_THAT(forced[1], containing((scratch / "tb/events.out.tfevents.").string()));
  CHECK(io::read(scratch / "metrics.jsonl") ==
        "{\"step\": 1, \"loss\": 2.5, \"learning_rate\": 0.1}\n"
        "{\"step\": 2, \"loss\": null, \"odd \\\" name\": 0.3333333333333333}\n");
  const std::vector<MetricSeries> series = read_metrics(scratch / "metrics.jsonl");
  REQUIRE(series.size() == 3);
  CHECK(series[0].name == "loss");
  CHECK(series[0].steps == std::vector<int64_t>{1, 2});
  CHECK(std::isnan(series[0].values[1]));
  CHECK(static_cast<float>(series[1].values[0]) == 0.1f);
  CHECK(series[2].values[0] == 1.0 / 3);
  CHECK(read_metrics(scratch / "missing").empty());
}

TEST_CASE("metrics log: after a rewind no step stands twice and none is missing") {
  Scratch scratch;
  const Path path = scratch / "metrics.jsonl";
  {
    MetricsLog log(path, scratch / "tb");
    for (int64_t step = 1; step <= 7; ++step) log.log(step, {{"loss", static_cast<double>(step)}});
  }
  io::Appender(path).raw("{\"step\": 8, \"lo");
  MetricsLog log(path, scratch / "tb");
  log.truncate_to(4);
  for (int64_t step = 5; step <= 6; ++step) log.log(step, {{"loss", -static_cast<double>(step)}});
  const std::vector<MetricSeries> series = read_metrics(path);
  REQUIRE(series.size() == 1);
  CHECK(series[0].steps == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(series[0].values == std::vector<double>{1, 2, 3, 4, -5, -6});
  std::vector<int64_t> steps;
  for (const Path& name : io::list(scratch / "tb")) {
    for (const ScalarEvent& event : decode_events(io::read(scratch.path() / "tb" / name))) {
      if (!event.scalars.empty()) steps.push_back(event.step);
    }
  }
  CHECK(steps == series[0].steps);
}

TEST_CASE("metrics log: scores of a validation that the run did not have go away, and nothing else does") {
  Scratch scratch;
  const Path path = scratch / "metrics.jsonl";
  MetricsLog log(path, scratch / "tb");
  for (const int64_t step : {2, 4, 5}) {
    log.log(step, {{"loss", 1}});
    log.log(step, {{"valid_loss", 2}, {"valid_accuracy", 0.5}});
  }
  log.truncate_to(5, 4);
  CHECK(io::read(path).find("\"step\": 5, \"valid") == std::string::npos);
  const std::vector<MetricSeries> series = read_metrics(path);
  REQUIRE(series.size() == 3);
  CHECK(series[0].steps == std::vector<int64_t>{2, 4, 5});
  CHECK(series[1].steps == std::vector<int64_t>{2, 4});
  CHECK(series[2].steps == std::vector<int64_t>{2, 4});
  std::vector<int64_t> steps;
  for (const Path& name : io::list(scratch / "tb")) {
    for (const ScalarEvent& event : decode_events(io::read(scratch.path() / "tb" / name))) {
      if (!event.scalars.empty()) steps.push_back(event.step);
    }
  }
  CHECK(steps == std::vector<int64_t>{2, 2, 4, 4, 5});
}

TEST_CASE("metrics log: a torn line never joins the next one") {
  Scratch scratch;
  const Path path = scratch / "metrics.jsonl";
  io::write(path, "{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"lo");
  CHECK(read_metrics(path)[0].steps == std::vector<int64_t>{1});
  MetricsLog(path, scratch / "tb").log(2, {{"loss", 2}});
  CHECK(read_metrics(path)[0].steps == std::vector<int64_t>{1, 2});
  // Should one have joined another by some other hand, the whole ones around it count.
  io::write(path,
            "{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"lo{\"step\": 2, \"loss\": 2}\n{\"step\": 3, "
            "\"loss\": 3}\n");
  CHECK(read_metrics(path)[0].steps == std::vector<int64_t>{1, 3});
}

TEST_CASE("metrics log: the table has a row for each step") {
  Scratch scratch;
  const Path path = scratch / "metrics.jsonl";
  MetricsLog log(path, scratch / "tb");
  log.log(1, {{"loss", 2.5}});
  log.log(2, {{"loss", 2.25}, {"valid, all", 3}});
  log.log(2, {{"bleu", 17.5}});
  write_metrics_csv(path, scratch / "metrics.csv");
  CHECK(io::read(scratch / "metrics.csv") == "step,loss,\"valid, all\",bleu\n1,2.5,,\n2,2.25,3,17.5\n");
}

TEST_CASE("metrics log: links are refused, and what they lead to stays as it is") {
  Scratch scratch;
  const Path victim = scratch.file("victim", "{\"step\": 9}\ntorn"), lines = scratch / "metrics.jsonl";
  REQUIRE(::symlink("victim", lines.c_str()) == 0);
  CHECK_THROWS_WITH(MetricsLog(lines, scratch / "tb"), containing(text(lines, " is a link to victim")));
  io::remove_all(lines);
  MetricsLog log(lines, scratch / "tb");
  io::remove_all(lines);
  REQUIRE(::symlink("victim", lines.c_str()) == 0);
  CHECK_THROWS_WITH(log.truncate_to(0), containing("is a link to victim"));
  CHECK_THROWS_WITH(write_metrics_csv(victim, lines), containing("is a link to victim"));
  CHECK(io::read(victim) == "{\"step\": 9}\ntorn");
}
