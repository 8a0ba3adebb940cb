// How fit() ends and what it says then: steps, patience, time, signals; load_best().
#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "heed/autograd/ops.h"
#include "heed/nn/linear.h"
#include "heed/tests/catch.h"
#include "heed/tests/standard_error.h"
#include "heed/train/fit.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/load_best.h"
#include "heed/train/run/metrics_log.h"

using namespace heed;

namespace {

struct Line final : Module {
  explicit Line(int64_t inputs = 2) : rng(3), layer(inputs, 1, rng) {}
  Tensor operator()(const Tensor& x, const ForwardContext& context) const {
    return dropout(layer(x), 0.1, context.rng);
  }
  void fields(Fields& f) override { f("layer", layer); }
  Rng rng;
  Linear layer;
};

Tensor line_loss(Line& model, const Batch& batch, const ForwardContext& context) {
  return mean(square(model(batch[0], context) - batch[1]));
}

const TensorDataset& sums() {
  static const TensorDataset all(
      {Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, Shape{4, 2}), Tensor::from({3, 7, 11, 15}, Shape{4, 1})});
  return all;
}

struct RaisesAt final : Callback {
  explicit RaisesAt(int64_t number) : step(number) {}
  void after_step(const TrainContext& context, const StepResult& result) override {
    last = result;
    if (context.step == step) std::raise(SIGTERM);
  }
  int64_t step;
  StepResult last;
};

/// A fit() of Line with batches of 2, and what it printed.
struct Run {
  FitResult result;
  std::string words;
};
Run run_fit(FitOptions options,
            const std::function<Tensor(Line&, const Batch&, const ForwardContext&)>& loss = line_loss) {
  Line model;
  DataLoader loader(sums(), {.batch_size = 2}), validation(sums(), {.batch_size = 4});
  if (options.patience > 0 || options.validate_every > 0) options.validation = &validation;
  options.schedule.learning_rate = 0.01;
  Run run;
  run.words = errors_of([&] { run.result = fit(model, loader, loss, options); });
  return run;
}

volatile std::sig_atomic_t num_caught = 0;
void count_signal(int) { num_caught = num_caught + 1; }

}  // namespace

TEST_CASE("fit: all steps or epochs are an end, which its last line says") {
  const Run steps = run_fit({.steps = 1200});
  CHECK(steps.result.end == FitEnd::steps);
  CHECK_THAT(steps.words, containing("\nfit: ended after 1,200 steps: all are taken\n"));
  const Scratch scratch;
  const Run epochs = run_fit({.epochs = 3, .folder = scratch / "run"});
  CHECK(epochs.result.end == FitEnd::steps);
  CHECK_THAT(epochs.words,
             containing("fit: ended after 6 steps: all 3 epochs are over\nSaved at step 6 in ") &&
                 containing("run"));
  const Run again = run_fit({.epochs = 3, .folder = scratch / "run"});
  CHECK_THAT(again.words,
             containing("was complete, so no step was taken. Raise FitOptions::epochs to go on."));
  const Run more = run_fit({.epochs = 4, .folder = scratch / "run", .keep_checkpoints = 3});
  CHECK_THAT(more.words,
             containing("fit: resumes ") && containing(" at step 6 with FitOptions::epochs = 4, before 3; "
                                                       "FitOptions::keep_checkpoints = 3, before 2\n"));
  CHECK(run_fit({.steps = 1, .quiet = true}).words.empty());
}

TEST_CASE("fit: patience, a score and the time limit are ends, with what is kept and how to go on") {
  const Scratch scratch;
  FitOptions options{.steps = 100, .validate_every = 1, .patience = 2, .folder = scratch / "patient"};
  options.optimizer.kind = OptimizerKind::sgd;
  // The gradient points away, so no validation after the first is better.
  const Run patient = run_fit(options, [](Line& model, const Batch& batch, const ForwardContext& context) {
    const Tensor loss = line_loss(model, batch, context);
    return recording() ? loss * -1.0 : loss;
  });
  CHECK(patient.result.end == FitEnd::patience);
  CHECK(patient.result.early);
  CHECK(patient.result.step == 3);
  CHECK_THAT(patient.words,
             containing("fit: ended after 3 steps: no better validation in 2 (patience)\nSaved at "
                        "step 3 in ") &&
                 containing("; load_best() loads the best weights, those of step 1."));
  const FitOptions good{.steps = 100, .validate_every = 2, .stop_score = 1e6, .folder = scratch / "good"};
  const Run reached = run_fit(good);  // the score is a loss
  CHECK(reached.result.end == FitEnd::score);
  CHECK(reached.result.step == 2);
  CHECK_THAT(reached.words,
             containing("fit: ended after 2 steps: a validation is as good as 1e+06 (stop_score)"));
  CHECK_THAT(run_fit(good).words, containing("Set FitOptions::stop_score = 0 to go on."));
  const Run late = run_fit({.steps = 100, .time_limit = 1e-9, .folder = scratch / "late"});
  CHECK(late.result.end == FitEnd::time_limit);
  CHECK_THAT(
      late.words,
      containing("fit: ended after 1 step: 1e-09 seconds are over (time_limit)\nSaved at step 1 in ") &&
          containing("; run the program again to resume."));
  CHECK_THAT(run_fit({.steps = 100, .time_limit = 1e-9}).words,
             containing("Nothing is saved, since FitOptions::folder is empty."));
}

TEST_CASE("fit: a signal reaches the program's own handler once, which stays in force") {
  num_caught = 0;
  const auto before = std::signal(SIGTERM, count_signal);
  RaisesAt stop(2);
  const Scratch scratch;
  const Run run = run_fit({.steps = 9, .callbacks = {&stop}, .folder = scratch / "run"});
  CHECK(run.result.end == FitEnd::signal);
  CHECK_THAT(run.words, containing("fit: ended after 2 steps: SIGTERM came (signal)\nSaved at step 2 in ") &&
                            containing("; run the program again to resume."));
  CHECK(num_caught == 1);
  std::raise(SIGTERM);
  CHECK(num_caught == 2);
  std::signal(SIGTERM, before);
}

TEST_CASE("fit: StopSignals of the program stay in force, and the signal is not raised again") {
  {
    const StopSignals own;
    RaisesAt stop(2);
    const Run run = run_fit({.steps = 9, .callbacks = {&stop}});
    CHECK(run.result.step == 2);
    CHECK(run.result.stopped_by == SIGTERM);
    CHECK(StopSignals::received() == SIGTERM);
    const Run next = run_fit({.steps = 9});  // the signal came before: no step is taken
    CHECK(next.result.step == 0);
    CHECK(next.result.end == FitEnd::signal);
    CHECK(StopSignals::any_alive());
  }
  CHECK(!StopSignals::any_alive());
  CHECK(run_fit({.steps = 9}).result.step == 9);
}

TEST_CASE("fit: rows a second where batches have no tokens") {
  const Scratch scratch;
  RaisesAt watch(0);
  const Run run = run_fit({.steps = 3, .callbacks = {&watch}, .folder = scratch / "run"});
  CHECK(watch.last.tokens == 0);
  CHECK(watch.last.examples == 2);
  CHECK_THAT(run.words, containing(" examples/s") && !containing("tok/s"));
  for (const MetricSeries& series : read_metrics(scratch / "run/metrics.jsonl")) {
    CHECK(series.name != "tokens_per_second");
    if (series.name == "examples_per_second") CHECK(series.values.back() > 0);
  }
  CHECK_THAT(io::read(scratch / "run/metrics.jsonl"), containing("\"examples_per_second\": "));
}

TEST_CASE("fit: the speed leaves out the writing of checkpoints and what follows it") {
  struct SlowSave final : Callback {
    void after_save(const TrainContext&) override { std::this_thread::sleep_for(std::chrono::seconds(1)); }
  };
  const Scratch scratch;
  SlowSave slow;
  run_fit({.steps = 2, .validate_every = 1, .callbacks = {&slow}, .folder = scratch / "run"});
  const std::vector<MetricSeries> metrics = read_metrics(scratch / "run/metrics.jsonl");
  const auto speed = std::ranges::find(metrics, "examples_per_second", &MetricSeries::name);
  REQUIRE(speed != metrics.end());
  REQUIRE(speed->values.size() == 2);
  CHECK(speed->values.back() > 2);  // a step has two examples, and a save takes a second
}

TEST_CASE("fit: a loss function that leaves out dropout is warned of, but not where that is asked for") {
  const auto without_context = [](Line& model, const Batch& batch, const ForwardContext&) {
    return line_loss(model, batch, {});
  };
  const Run run = run_fit({.steps = 3}, without_context);
  const std::string warning = "fit: the loss function leaves out dropout = 0.1";
  CHECK_THAT(run.words, containing(warning));
  CHECK(run.words.find(warning) == run.words.rfind(warning));  // once
  CHECK_THAT(run_fit({.steps = 3}).words, !containing(warning));
  CHECK_THAT(run_fit({.steps = 3, .overfit_batches = 1}).words, !containing(warning));
}

TEST_CASE("load_best: the best weights of a folder, or its last ones, and why there are none") {
  const Scratch scratch;
  const Path folder = scratch / "run";
  Line model;
  CHECK(fault_of([&] { load_best(model, folder); }) == Fault::file);
  CHECK_THROWS_WITH(load_best(model, folder), containing("load_best: there is no folder "));
  io::make_directories(folder);
  CHECK_THROWS_WITH(load_best(model, folder), containing("is not the folder of a run"));
  io::write(folder / "config.toml", "task = \"fit\"\n");
  CHECK_THROWS_WITH(load_best(model, folder), containing("has no checkpoint yet"));
  io::remove_all(folder);
  run_fit({.steps = 3, .folder = folder});
  CHECK(load_best(model, folder) == 3);
  const auto weights_of = [&](int64_t step) {
    return open_checkpoint(folder, std::to_string(step)).file("model.safetensors");
  };
  CHECK((save_bytes(model) == weights_of(3)));
  run_fit({.steps = 4, .folder = folder});
  mark_best(folder, 3);
  CHECK(load_best(model, folder) == 3);
  CHECK((save_bytes(model) == weights_of(3)));
  CHECK((weights_of(3) != weights_of(4)));
  Line wide(3);
  const std::string before = save_bytes(wide);
  CHECK(fault_of([&] { load_best(wide, folder); }) == Fault::data);
  CHECK_THROWS_WITH(load_best(wide, folder), containing("tensor layer.weight is f32 [1, 2] in the file"));
  CHECK((save_bytes(wide) == before));
}

TEST_CASE("fit: null pointers, and scores that nothing has made, are refused by name") {
  CHECK_THROWS_WITH(run_fit({.steps = 1, .callbacks = {nullptr}}), containing("callbacks[0] is null"));
  CHECK_THROWS_WITH(run_fit({.steps = 1, .metrics = {nullptr}}), containing("metrics[0] is null"));
  CHECK_THROWS_WITH(run_fit({.steps = 1}).result.best.first(), containing("no validation took place"));
  CHECK(std::string(to_string(FitEnd::time_limit)) == "time_limit");
}
