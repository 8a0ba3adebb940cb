// Curves of runs: joined metrics, thinning, and the CSV.
#include "heed/train/experiments/run_curve.h"

#include <cmath>
#include <sstream>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/comma_locale.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

/// A run of so many logged steps (every tenth), validated each hundredth, best at `best`.
RunCurve long_curve(int64_t steps, int64_t best) {
  RunCurve out{.score = "accuracy", .higher_is_better = true, .points = {}};
  for (int64_t step = 10; step <= steps; step += 10) {
    CurvePoint point{.step = step,
                     .seconds = 0.1 * static_cast<double>(step),
                     .train_loss = 1 + 1.0 / static_cast<double>(step)};
    if (step % 100 == 0) {
      point.valid_loss = 2;
      point.valid_score = step == best ? 0.9 : 0.5;
    }
    out.points.push_back(point);
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& csv) {
  std::istringstream in(csv);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

TEST_CASE("curve: losses, seconds and validations of one step are one point, in order") {
  const Scratch scratch;
  io::write(scratch / "metrics.jsonl",
            "{\"step\": 10, \"loss\": 3, \"learning_rate\": 1, \"seconds\": 1}\n"
            "{\"step\": 10, \"valid_accuracy\": 0.25, \"valid_loss\": 2.5}\n"
            "{\"step\": 15, \"valid_accuracy\": 0.75, \"valid_loss\": 2}\n"
            "{\"step\": 20, \"loss\": 2, \"seconds\": 3}\n"
            "{\"step\": 25, \"valid_accuracy\": 0.5, \"valid_loss\": 2.25}\n");
  const RunCurve curve = read_curve(scratch / "metrics.jsonl", "accuracy");
  REQUIRE(curve.points.size() == 4);
  CHECK(curve.points[0].train_loss == 3);
  CHECK(curve.points[0].valid_score == 0.25);
  CHECK(curve.points[1].seconds == 2);  // between its neighbours
  CHECK(std::isnan(curve.points[1].train_loss));
  CHECK(curve.points[3].seconds == 3);
  REQUIRE(curve.best() != nullptr);
  CHECK(curve.best()->step == 15);
  CHECK(curve.last()->step == 25);
  const RunCurve losses = read_curve(scratch / "metrics.jsonl", "loss");
  CHECK(losses.score.empty());
  CHECK(losses.best()->step == 15);
  CHECK(read_curve(scratch / "metrics.jsonl", "bleu").score.empty());  // not logged
  CHECK(read_curve(scratch / "none", "accuracy").best() == nullptr);
  CHECK(curve_csv(curve, {{"seed", "1"}}) ==
        "# seed: 1\n# points: 4 of 4; train_loss is the mean over the steps since the point before\n"
        "step,seconds,train_loss,valid_loss,valid_accuracy\n"
        "10,1.00,3,2.5,0.25\n15,2.00,,2,0.75\n20,3.00,2,,\n25,3.00,,2.25,0.5\n");
}

TEST_CASE("curve: thinning keeps the first, the last and the best, and means over what is left out") {
  const RunCurve whole = long_curve(10000, 3700);
  const RunCurve few = thinned(whole, 40);
  CHECK(few.points.size() <= 40);
  CHECK(few.points.size() >= 30);
  CHECK(few.points.front().step == 10);
  CHECK(few.points.back().step == 10000);
  REQUIRE(few.best() != nullptr);
  CHECK(few.best()->step == 3700);
  int64_t before = 0;
  for (const CurvePoint& point : few.points) {
    CHECK(point.step - before <= 600);  // evenly: a 38th of 10,000, and half of it to either side
    double sum = 0;
    for (const CurvePoint& one : whole.points)
      sum += one.step > before && one.step <= point.step ? 10 * one.train_loss : 0;
    CHECK(point.train_loss == Approx(sum / static_cast<double>(point.step - before)));
    before = point.step;
  }
  // Where there is a validation among many, it stays.
  size_t validated = 0;
  for (const CurvePoint& point : few.points) validated += std::isfinite(point.valid_score) ? 1 : 0;
  CHECK(validated + 1 >= few.points.size());
  CHECK(thinned(whole, 100000).points.size() == whole.points.size());
}

TEST_CASE("curve: the CSV stays below its limit whatever the length, and says what it leaves out") {
  const RunCurve whole = long_curve(500000, 123400);
  const std::string csv = curve_csv(whole, {{"command", "heed\nreproduce"}});
  CHECK(csv.size() <= 60000);
  CHECK(csv.size() > 40000);
  const std::vector<std::string> lines = lines_of(csv);
  CHECK(lines[0] == "# command: heed reproduce");
  CHECK_THAT(lines[1], Catch::StartsWith("# points: ") && containing(" of 50000;"));
  CHECK(lines[3].starts_with("10,1.00,"));
  CHECK(lines.back().starts_with("500000,50000.00,"));
  CHECK(csv.find("\n123400,") != std::string::npos);
}

TEST_CASE("curve: series for charts have the names of the metrics") {
  const std::vector<MetricSeries> series = curve_series(long_curve(10000, 500), 50);
  REQUIRE(series.size() == 4);
  CHECK(series[0].name == "loss");
  CHECK(series[0].steps.size() <= 50);
  CHECK(series[3].name == "valid_accuracy");
  CHECK(series[3].values[0] == 0.5);
}

TEST_CASE("curve: a file of it reads back: facts, score and points") {
  const Scratch scratch;
  RunCurve curve = long_curve(1000, 500);
  curve.points[3].seconds = CurvePoint::none;
  io::write(scratch / "run.csv", curve_csv(curve, {{"command", "heed train: a, b"}, {"seed", "3"}}));
  const CurveFile file = read_curve_csv(scratch / "run.csv");
  CHECK(file.facts.at("command") == "heed train: a, b");
  CHECK(file.facts.at("seed") == "3");
  CHECK(file.curve.score == "accuracy");
  REQUIRE(file.curve.points.size() == curve.points.size());
  CHECK(file.curve.best()->step == 500);
  CHECK(file.curve.points[0].train_loss == Approx(1.1));
  CHECK(std::isnan(file.curve.points[0].valid_loss));
  CHECK(std::isnan(file.curve.points[3].seconds));
  CHECK(file.curve.points.back().valid_score == 0.5);
}

TEST_CASE("curve: a damaged file is refused, with the line, the value and what it must be") {
  const Scratch scratch;
  const auto refusal = [&](const std::string& bytes) -> std::string {
    try {
      read_curve_csv(scratch.file("c.csv", bytes));
    } catch (const Error& error) {
      CHECK(static_cast<int>(error.fault()) == static_cast<int>(Fault::data));
      return error.what();
    }
    return "it was read";
  };
  const std::string head = "# seed: 1\n", names = "step,seconds,train_loss,valid_loss,valid_accuracy\n";
  const auto point = [&](const std::string& line) { return refusal(head + names + line + "\n"); };
  REQUIRE(point("10,1.00,2.5,2,0.35") == "it was read");
  REQUIRE(point("10,,,,") == "it was read");
  for (const char* bad : {"0,35", "0.35abc", "0x1p-1", "nan", "inf", "+0.35", "35"}) {
    CAPTURE(bad);
    CHECK_THAT(point(text("10,1.00,2.5,2,", bad)), containing("c.csv:3: '"));
  }
  CHECK_THAT(point("10,1.00,2.5,2,0.35abc"),
             containing("c.csv:3: '0.35abc': valid_accuracy is a number such as 0.35, or nothing."));
  CHECK_THAT(point("10,1.00,2.5,2,0,35"), containing("a point has 5 cells, one for each column"));
  CHECK_THAT(point("10,1.00,2.5,2"), containing("a point has 5 cells"));
  CHECK_THAT(point("10,1.00,2.5,2,35"), containing("'35': an accuracy is from 0 to 1"));
  CHECK_THAT(point("10,-1,2.5,2,"), containing("'-1': seconds are 0 or more"));
  for (const char* step : {"1e30", "1e1", "10.0", "-1", "99999999999999999999", "", "nan"}) {
    CAPTURE(step);
    CHECK_THAT(point(text(step, ",1.00,2.5,2,")), containing("a step is a whole number from 0 to 9007"));
  }
  CHECK_THAT(refusal(names + "10,,,,\n10,,,,\n"),
             containing("c.csv:3: '10': a step is a whole number from 11"));
  CHECK_THAT(refusal(head + names), containing("lines of points follow"));
  CHECK_THAT(refusal(head + "10,,,,\n"), containing("c.csv:2: '10,,,,': the names of the columns are step,"));
  CHECK_THAT(refusal("# seed: 1\n# seed: 2\n"), containing("c.csv:2: 'seed': each fact stands there once"));
  CHECK_THAT(refusal("#seed: 1\n"), containing("'# NAME: VALUE'"));
  CHECK_THAT(refusal("step,seconds,train_loss,valid_loss,valid_<b>\n"), containing("names of the columns"));
  CHECK_THAT(refusal(names + "10,,,,"), containing("cut short"));
  CHECK_THAT(refusal(""), containing("c.csv:1: "));
  CHECK_THAT(refusal("# points: 2 of 9\n" + names + "10,,,,\n"),
             containing("c.csv:1: '2 of 9': the line must begin with the number of points that follow, 1;"));
  const std::string whole = point("10," + std::string(100'000, '7'));
  CHECK(whole.size() < 400);  // a long line is shortened
  CHECK_THAT(refusal(head + "# machine: \x1B[2J\n" + names), containing("\\u001b") && containing("control"));
}

TEST_CASE("curve: a locale with decimal commas changes no byte of a file") {
  const RunCurve curve = long_curve(1000, 500);
  const std::string plain = curve_csv(curve, {{"seed", "3"}});
  const CommaLocale locale;
  if (!locale.made()) return;
  CHECK(curve_csv(curve, {{"seed", "3"}}) == plain);
  const Scratch scratch;
  CHECK(read_curve_csv(scratch.file("c.csv", plain)).curve.best()->valid_score == 0.9);
}
