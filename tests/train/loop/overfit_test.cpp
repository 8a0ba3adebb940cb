// A run on the same few batches: which they are, its validations, its resuming, and what is said of it.
#include "heed/train/loop/overfit.h"

#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

namespace {

/// Counts which batches training asks for.
class Watching final : public TrainCallback {
 public:
  bool inside_steps() const override { return true; }
  void before_step(const TrainContext&, StepBatches& batches) override {
    for (int64_t i = 0; i < batches.count(); ++i) {
      std::vector<double> values;
      for (const Tensor& x : batches.at(i).tensors) {
        const std::vector<double> more = x.to_doubles();
        values.insert(values.end(), more.begin(), more.end());
      }
      seen.insert(values);
    }
  }
  std::set<std::vector<double>> seen;
};

Config few(int64_t batches) {
  return tiny({{"train.overfit_batches", text(batches)},
               {"train.grad_accumulation", "1"},
               {"train.max_steps", "60"},
               {"train.warmup_steps", "1"},
               {"model.dropout", "0"},
               {"model.attention_dropout", "0"},
               {"train.label_smoothing", "0"},
               {"train.validate_every", "30"}});
}

const MetricSeries& series(const std::vector<MetricSeries>& all, const std::string& name) {
  for (const MetricSeries& one : all) {
    if (one.name == name) return one;
  }
  FAIL("there is no series " << name);
  return all.front();
}

}  // namespace

TEST_CASE("overfit: training sees the first batches of the first epoch alone, and learns them") {
  const Scratch scratch;
  Config config = few(2);
  config.task->load(config, {}, [](const std::string&) {});
  REQUIRE(config.task->plan(0) > 2);
  CHECK(plan_epoch(config, 0) == 2);
  CHECK(plan_epoch(config, 5) == 2);
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run"});
  Progress progress;
  progress.quiet = true;
  Watching watching;
  Trainer trainer(config, folder, std::nullopt, progress, single_process(), {&watching});
  const TrainResult result = trainer.run();
  CHECK(watching.seen.size() == 2);

  const std::vector<MetricSeries> metrics = read_metrics(folder.metrics());
  const std::vector<double>& losses = series(metrics, "loss").values;
  CHECK(losses.back() < 0.6 * losses.front());
  // A validation is the loss of these batches, evaluating.
  REQUIRE(result.best.list.size() == 1);
  CHECK(result.best.list[0].first == "loss");
  plan_epoch(config, 0);
  CHECK(series(metrics, "valid_loss").values.back() ==
        Approx(overfit_scores(config, trainer.model()).first()).epsilon(1e-6));
  CHECK(result.best.first() < losses.front());
}

TEST_CASE("overfit: a resumed run is bit-identical to an uninterrupted one") {
  const Scratch scratch;
  for (const char* accumulate : {"1", "3"}) {
    const std::string name = std::string("a") + accumulate;
    const auto made = [&] {
      Config config = few(2);
      config.set("train.max_steps", "8", "");
      config.set("train.validate_every", "4", "");
      config.set("train.grad_accumulation", accumulate, "");
      return config;
    };
    train_session(scratch / (name + "whole"), made());
    train_session(scratch / (name + "half"), made(), 5);
    train_session(scratch / (name + "half"), made());
    check_same(scratch / (name + "whole"), scratch / (name + "half"), 8);
  }
}

TEST_CASE("overfit: more batches than an epoch has are refused") {
  const Scratch scratch;
  Config config = few(5000);
  config.task->load(config, {}, [](const std::string&) {});
  const int64_t planned = config.task->plan(0);
  CHECK_THROWS_WITH(plan_epoch(config, 0), containing("train.overfit_batches = 5000") &&
                                               containing(text("an epoch has ", planned, " batches")));
}

TEST_CASE("overfit: the verdict tells by heart from on the way from not at all") {
  CHECK_THAT(overfit_verdict(4, 0.4), containing("loss 4 at first, 0.4 at last: ") && containing("by heart"));
  CHECK_THAT(overfit_verdict(4, 0.5), containing("it learns; more steps"));
  CHECK_THAT(overfit_verdict(4, 3.7), containing("it does not learn"));
  CHECK_THAT(overfit_verdict(4, 9), containing("it does not learn"));
  CHECK_THAT(overfit_verdict(-1, -3), containing("it learns; more steps"));
  CHECK_THAT(overfit_verdict(-1, 2), containing("it does not learn"));
}
