// The range test of learning rates: its steps, its end, and what it reads from the curve.
#include "heed/train/loop/learning_rate_finder.h"

#include <cmath>

#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/config/debug_runs.h"

using namespace heed;

namespace {

void ignore(const std::string&) {}

/// Losses that fall from 4 to 1 around the rate 1e-3 and explode behind 1e-1.
LearningRateCurve textbook() {
  LearningRateCurve curve;
  for (int i = 0; i < 100; ++i) {
    const double decade = -7 + 7 * i / 99.0;
    curve.rates.push_back(std::pow(10, decade));
    const double noise = 0.01 * std::sin(7.0 * i);
    const double blast = decade > -1 ? std::exp(6 * (decade + 1)) - 1 : 0;
    curve.losses.push_back(1 + 3 / (1 + std::exp(4 * (decade + 3))) + blast + noise);
  }
  return curve;
}

}  // namespace

TEST_CASE("find lr: the suggestion is the steepest descent of the smoothed loss") {
  LearningRateCurve curve = textbook();
  analyse(curve);
  REQUIRE(curve.suggestion());
  CHECK(std::log10(*curve.suggestion()) == Approx(-3).margin(0.3));
  CHECK(curve.rates[curve.lowest] > 1e-2);
  CHECK(curve.rates[curve.lowest] < 0.3);
  REQUIRE(curve.smoothed.size() == 100);

  // What is behind a loss that is not finite does not count.
  curve.losses[80] = NAN;
  analyse(curve);
  CHECK(curve.smoothed.size() == 80);
  REQUIRE(curve.suggestion());
  CHECK(std::log10(*curve.suggestion()) == Approx(-3).margin(0.3));
}

TEST_CASE("find lr: a loss that never falls gives no suggestion") {
  LearningRateCurve curve = textbook();
  for (size_t i = 0; i < curve.losses.size(); ++i) curve.losses[i] = 1 + static_cast<double>(i);
  analyse(curve);
  CHECK(!curve.suggestion());
  CHECK(curve.lowest == 0);
  curve.losses[0] = INFINITY;
  analyse(curve);
  CHECK(curve.smoothed.empty());
  CHECK(!curve.suggestion());
}

TEST_CASE(
    "find lr: its steps are those of training, at rates that rise exponentially, and it changes nothing") {
  Config config = tiny({{"train.max_steps", "3"},
                        {"train.warmup_steps", "0"},
                        {"train.schedule", "constant"},
                        {"train.learning_rate", "1e-5"}});
  config.task->load(config, {}, [](const std::string&) {});
  const std::string before = to_toml(config);
  const LearningRateRange range{.from = 1e-5, .to = 1e-2, .steps = 13};
  std::vector<double> told;
  const LearningRateCurve curve =
      find_learning_rate(config, range, [&](int64_t step, double rate, double loss) {
        CHECK(step == static_cast<int64_t>(told.size()) + 1);
        CHECK(rate == Approx(1e-5 * std::pow(10, 0.25 * static_cast<double>(told.size()))));
        told.push_back(loss);
      });
  CHECK(curve.losses == told);
  REQUIRE(curve.losses.size() == 13);
  CHECK(!curve.diverged);
  CHECK(to_toml(config) == before);
  CHECK(find_learning_rate(config, range).losses == curve.losses);

  // The first two steps of a run at the first rate: the second has that rate behind it as well.
  const Scratch scratch;
  train_session(scratch / "run", tiny({{"train.max_steps", "3"},
                                       {"train.warmup_steps", "0"},
                                       {"train.schedule", "constant"},
                                       {"train.learning_rate", "1e-5"}}));
  for (const MetricSeries& one : read_metrics(scratch / "run/metrics.jsonl")) {
    if (one.name != "loss") continue;
    CHECK(one.values[0] == curve.losses[0]);
    CHECK(one.values[1] == curve.losses[1]);
    CHECK(one.values[2] != curve.losses[2]);
  }
}

TEST_CASE("find lr: the lines of docs/how-to/develop.md") {
  Config config = make_config("recall");
  overfit(config, 1);  // or fast_dev_run(config)
  config.task->load(config, {}, ignore);
  const LearningRateCurve curve = find_learning_rate(config, {.steps = 20});
  CHECK(curve.losses.size() >= 10);
}

TEST_CASE("find lr: it ends where the loss diverges") {
  Config config = tiny({{"train.optimizer", "sgd"}, {"train.grad_clip", "0"}});
  config.task->load(config, {}, [](const std::string&) {});
  const LearningRateCurve curve = find_learning_rate(config, {.from = 1e-3, .to = 1e6, .steps = 60});
  CHECK(curve.diverged);
  CHECK(curve.losses.size() < 60);
}

TEST_CASE("find lr: a range that is none is refused") {
  Config config = tiny();
  for (const LearningRateRange& range :
       {LearningRateRange{.from = 0}, LearningRateRange{.from = 2}, LearningRateRange{.to = INFINITY},
        LearningRateRange{.from = NAN}, LearningRateRange{.steps = 9}, LearningRateRange{.divergence = 1}})
    CHECK_THROWS_WITH(find_learning_rate(config, range), containing("LearningRateRange: "));
}

TEST_CASE("find lr: the rate of noam is a factor, whose schedule peaks at the suggestion") {
  Config config = tiny({{"train.schedule", "noam"}, {"train.warmup_steps", "40"}});
  const double factor = learning_rate_for_peak(config, 3e-4);
  config.train.schedule.learning_rate = factor;
  CHECK(config.train.schedule.at(40, 1000, config.model.d_model) == Approx(3e-4));
  config.set("train.schedule", "cosine", "");
  CHECK(learning_rate_for_peak(config, 3e-4) == 3e-4);
}
