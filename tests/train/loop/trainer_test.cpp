// The training loop: stop, resume, early stopping, and errors for non-finite numbers.
#include "heed/train/loop/trainer.h"

#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/loop/run_estimate.h"

using namespace heed;

TEST_CASE("trainer: a run stopped anywhere and resumed is bit-identical to an uninterrupted one") {
  Scratch scratch;
  const int before = threads();
  set_threads(2);
  const TrainResult whole = train_session(scratch / "whole", tiny());
  CHECK(whole.step == 12);
  CHECK(whole.stopped_by == 0);
  CHECK(!whole.early);
  CHECK(metrics_of(scratch / "whole").size() == 12 * 3 + 4 * 2);
  // Batches asked for: 2 a step. 1: first step; 7 and 8: in and between steps; 11: a step with a validation;
  // 23: the last.
  for (const int64_t at : {0, 1, 7, 8, 11, 23}) {
    CAPTURE(at);
    const Path run = scratch / ("stopped" + std::to_string(at));
    set_threads(2);
    const TrainResult stopped = train_session(run, tiny(), at);
    CHECK(stopped.stopped_by == SIGTERM);
    CHECK(!stopped.finished());
    CHECK(stopped.step == at / 2 + 1);
    CHECK(list_checkpoints(run).back() == stopped.step);
    set_threads(at % 2 == 0 ? 1 : 3);
    const TrainResult resumed = train_session(run, tiny());
    CHECK(resumed.step == 12);
    CHECK(resumed.best_step == whole.best_step);
    CHECK(resumed.best.list == whole.best.list);
    check_same(scratch / "whole", run, 12);
  }
  set_threads(before);
}

TEST_CASE("trainer: a run stopped many times is the same run") {
  Scratch scratch;
  const Settings settings{{"train.validate_every", "2"},
                          {"train.patience", "50"},
                          {"train.optimizer", "sgd"},
                          {"train.learning_rate", "0.5"}};
  train_session(scratch / "whole", tiny(settings));
  TrainResult outcome;
  int sessions = 0;
  do {
    outcome = train_session(scratch / "pieces", tiny(settings), 3);
    ++sessions;
  } while (outcome.stopped_by != 0);
  CHECK(sessions == 7);  // the last of six stops comes after the last step
  check_same(scratch / "whole", scratch / "pieces", 12);
}

TEST_CASE("trainer: a validation after each pass over the data, where no number of steps is given") {
  Scratch scratch;
  const Settings settings{{"train.max_steps", "0"},         {"train.epochs", "3"},
                          {"train.grad_accumulation", "1"}, {"train.validate_every", "0"},
                          {"data.buckets", "false"},        {"train.batch_size", "30"},
                          {"data.bleu_pairs", "0"},         {"train.validate_each_epoch", "true"}};
  const TrainResult result = train_session(scratch / "run", tiny(settings));
  CHECK(result.step == 3 * 10);  // 280 of 300 pairs are left, 30 a batch
  for (const MetricSeries& series : read_metrics(scratch / "run" / "metrics.jsonl")) {
    if (series.name == "valid_loss") CHECK(series.steps == std::vector<int64_t>{10, 20, 30});
  }
  TrainOptions each;
  each.validate_each_epoch = true;
  each.grad_accumulation = 4;
  CHECK(validate_every(each, 100, 10) == 2);
  each.grad_accumulation = 40;
  CHECK(validate_every(each, 100, 10) == 1);
  each.validate_every = 7;
  CHECK(validate_every(each, 100, 10) == 7);
  CHECK(validate_every({}, 100, 10) == 10);
  CHECK(validate_every({}, 5, 10) == 1);
}

TEST_CASE("trainer: metrics gathered over several steps survive a stop between them") {
  Scratch scratch;
  const Settings settings{
      {"train.max_steps", "600"},   {"train.validate_every", "200"}, {"train.grad_accumulation", "1"},
      {"train.batch_tokens", "20"}, {"data.num_examples", "60"},     {"model.d_model", "4"},
      {"model.d_ff", "4"}};
  train_session(scratch / "whole", tiny(settings));
  CHECK(train_session(scratch / "stopped", tiny(settings), 100).step == 101);  // lines come every third step
  train_session(scratch / "stopped", tiny(settings));
  CHECK(metrics_of(scratch / "whole") == metrics_of(scratch / "stopped"));
}

TEST_CASE("trainer: a run killed before its first checkpoint begins anew without old lines") {
  Scratch scratch;
  train_session(scratch / "whole", tiny());
  train_session(scratch / "killed", tiny(), 9);
  io::remove_all(scratch / "killed/ckpt");
  CHECK(train_session(scratch / "killed", tiny()).step == 12);
  check_same(scratch / "whole", scratch / "killed", 12);
}

TEST_CASE("trainer: going on from an earlier checkpoint leaves later ones behind and ends the same") {
  Scratch scratch;
  const Settings settings{{"train.keep_checkpoints", "5"}};
  train_session(scratch / "whole", tiny(settings));
  train_session(scratch / "again", tiny(settings));
  CHECK(list_checkpoints(scratch / "again") == std::vector<int64_t>{3, 6, 9, 12});
  CHECK(train_session(scratch / "again", tiny(settings), 1, "3").step == 4);
  CHECK(list_checkpoints(scratch / "again") == std::vector<int64_t>{3, 4});
  CHECK(best_step(scratch / "again").value_or(0) <= 4);
  CHECK(open_checkpoint(scratch / "again", "best").step <= 4);
  train_session(scratch / "again", tiny(settings));
  check_same(scratch / "whole", scratch / "again", 12);
}

TEST_CASE(
    "trainer: a run that goes on from an earlier checkpoint and is killed before it saves has one past") {
  Scratch scratch;
  const Settings settings{{"train.keep_checkpoints", "10"}};
  train_session(scratch / "whole", tiny(settings));
  train_session(scratch / "again", tiny(settings));
  REQUIRE(list_checkpoints(scratch / "again").back() == 12);
  // A fault ends it without a save.
  CHECK(fault_of([&] { train_session(scratch / "again", tiny(settings), -1, "3", "gradient@5"); }) ==
        Fault::numeric);
  CHECK(list_checkpoints(scratch / "again") == std::vector<int64_t>{3});
  CHECK(best_step(scratch / "again") == std::optional<int64_t>(3));
  CHECK(train_session(scratch / "again", tiny(settings)).step == 12);
  CHECK(list_checkpoints(scratch / "again") == std::vector<int64_t>{3, 6, 9, 12});
  check_same(scratch / "whole", scratch / "again", 12);
}

TEST_CASE("trainer: patience ends a run, keeps its best checkpoint, and stays ended") {
  Scratch scratch;
  const Settings settings{{"train.learning_rate", "0"},
                          {"train.validate_every", "1"},
                          {"train.patience", "2"},
                          {"train.keep_checkpoints", "1"}};
  const TrainResult outcome = train_session(scratch / "run", tiny(settings));
  CHECK(outcome.step == 3);  // the first validation is the best; two more are none better
  CHECK(outcome.best_step == 1);
  CHECK(outcome.early);
  CHECK(outcome.finished());
  CHECK(list_checkpoints(scratch / "run") == std::vector<int64_t>{1, 3});
  CHECK(best_step(scratch / "run") == std::optional<int64_t>(1));
  CHECK(train_session(scratch / "run", tiny(settings)).step == 3);
  // Stopped by a signal in the last step before that: the resumed run counts as the other one did.
  CHECK(train_session(scratch / "stopped", tiny(settings), 4).step == 3);
  CHECK(train_session(scratch / "stopped", tiny(settings)).step == 3);
  check_same(scratch / "run", scratch / "stopped", 3);
}

TEST_CASE("trainer: a time limit validates, saves and stops, a greater one goes on to the same end") {
  Scratch scratch;
  const TrainResult outcome = train_session(scratch / "run", tiny({{"train.time_limit", "1e-6"}}));
  CHECK(outcome.step == 1);
  CHECK(outcome.early);
  CHECK(outcome.finished());
  CHECK(outcome.best.list.size() == 2);
  CHECK(list_checkpoints(scratch / "run") == std::vector<int64_t>{1});
  CHECK(train_session(scratch / "run", tiny({{"train.time_limit", "1e-6"}})).step == 1);
  CHECK(train_session(scratch / "run", tiny()).step == 12);
  train_session(scratch / "whole", tiny());
  check_same(scratch / "whole", scratch / "run", 12);
}

TEST_CASE("trainer: the validation of a time limit is no part of the run, and counts for no patience") {
  const auto config = [](const std::string& limit) {
    return tiny({{"train.learning_rate", "0"},
                 {"train.max_steps", "24"},
                 {"train.validate_every", "4"},
                 {"train.patience", "2"},
                 {"train.time_limit", limit}});
  };
  Scratch scratch;
  CHECK(train_session(scratch / "whole", config("0")).step == 12);
  const TrainResult late = train_session(scratch / "late", config("1e-6"));
  CHECK(late.step == 1);
  CHECK(late.best_step == 1);
  CHECK(best_step(scratch / "late") == std::optional<int64_t>(1));  // while the run ends there
  CHECK(metrics_of(scratch / "late").size() > 1);
  const std::set<std::string> metrics = metrics_of(scratch / "late");
  CHECK(train_session(scratch / "late", config("1e-6")).best.list ==
        late.best.list);  // and once more, without a step
  CHECK(metrics_of(scratch / "late") == metrics);
  const TrainResult on = train_session(scratch / "late", config("0"));
  CHECK(on.step == 12);
  CHECK(on.best_step == 4);
  check_same(scratch / "whole", scratch / "late", 12);
}

TEST_CASE("trainer: epochs are turned into steps") {
  Scratch scratch;
  Config config = tiny({{"train.max_steps", "0"}, {"train.epochs", "2"}, {"train.grad_accumulation", "1"}});
  config.task->load(config, {}, [](const std::string&) {});
  const int64_t batches = config.task->plan(0);
  CHECK(batches > 4);
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run"});
  Progress progress;
  progress.quiet = true;
  CHECK(Trainer(config, folder, std::nullopt, progress).total_steps() == 2 * batches);
  config.train.grad_accumulation = 3;
  CHECK(Trainer(config, folder, std::nullopt, progress).total_steps() == (2 * batches + 2) / 3);
}

TEST_CASE("trainer: steps of accumulated batches pass over the data as often as epochs say") {
  const auto steps = [](int64_t epochs, int64_t accumulate, int64_t batches) {
    TrainOptions options;
    options.epochs = epochs;
    options.grad_accumulation = accumulate;
    return steps_of(options, batches);
  };
  CHECK(steps(10, 4, 7) == 18);  // 17.5 steps hold ten passes over 7 batches
  CHECK(steps(10, 1, 7) == 70);
  CHECK(steps(10, 7, 7) == 10);
  CHECK(steps(10, 20, 7) == 4);
  CHECK(steps(1, 20, 7) == 1);
}

TEST_CASE(
    "trainer: a rate that is too great is an error that names the step and keeps the last good checkpoint") {
  Scratch scratch;
  const Settings huge{{"train.learning_rate", "1e30"}, {"train.schedule", "constant"},
                      {"train.warmup_steps", "0"},     {"train.grad_clip", "0"},
                      {"train.checkpoint_every", "1"}, {"train.validate_every", "100"}};
  const auto message = [&](const std::string& name, const Settings& settings) -> std::string {
    try {
      train_session(scratch / name, tiny(settings));
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::numeric);
      return error.what();
    }
    return "no error";
  };
  const std::string said = message("run", huge);
  CHECK_THAT(said, containing("at step 2: first bad value in "));
  CHECK_THAT(
      said,
      containing(". Last good: step_000001. Lower train.learning_rate (now 1e+30), or leave such steps"));
  CHECK(list_checkpoints(scratch / "run") == std::vector<int64_t>{1});
  CHECK(open_checkpoint(scratch / "run").step == 1);
  // Weights may leave the range while loss and gradient are still fine: they are not saved as good.
  Settings beyond = huge;
  beyond[0].second = "1e39";
  CHECK_THAT(message("beyond", beyond), containing("the weights stopped being finite at step 1"));
  CHECK(list_checkpoints(scratch / "beyond").empty());
  Settings watched = huge;
  watched.emplace_back("train.detect_anomaly", "true");
  const std::string seen = message("watched", watched);
  CAPTURE(seen);
  CHECK_THAT(seen, containing("first bad value in encoder.blocks.0."));
}

TEST_CASE("trainer: a folder in use is busy") {
  Scratch scratch;
  Config config = tiny();
  config.task->load(config, {}, [](const std::string&) {});
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run", .command = "the first"});
  io::write(folder.config(), to_toml(config));
  Progress progress;
  progress.quiet = true;
  Trainer first(config, folder, std::nullopt, progress);
  CHECK(fault_of([&] { train_session(scratch / "run", tiny()); }) == Fault::busy);
  CHECK_THROWS_WITH(train_session(scratch / "run", tiny()), containing("the first"));
}

TEST_CASE("trainer: the checkpoint of another model is refused") {
  Scratch scratch;
  train_session(scratch / "run", tiny(), 1);
  CHECK(fault_of([&] { train_session(scratch / "run", tiny({{"model.d_model", "32"}})); }) == Fault::data);
  CHECK(fault_of([&] { train_session(scratch / "run", tiny({{"train.optimizer", "sgd"}})); }) == Fault::data);
}

TEST_CASE("trainer: live memory does not grow over a run") {
  Scratch scratch;
  const int64_t before = memory_use().live;
  train_session(scratch / "run", tiny());
  CHECK(memory_use().live == before);
}

TEST_CASE("trainer: scores that are not numbers are never the best") {
  const Scores nan{.list = {{"loss", NAN}}}, two{.list = {{"loss", 2}}}, one{.list = {{"loss", 1}}};
  CHECK(one.better_than(two));
  CHECK(!two.better_than(one));
  CHECK(one.better_than(nan));
  CHECK(!nan.better_than(one));
  const Scores high{.list = {{"bleu", 5}}, .lower_is_better = false},
      low{.list = {{"bleu", 4}}, .lower_is_better = false};
  CHECK(high.better_than(low));
}

TEST_CASE("trainer: a state that cannot be is refused with its file, whatever its check sums say") {
  Scratch scratch;
  const Path run = scratch / "run";
  train_session(run, tiny(), 9);
  const Checkpoint good = open_checkpoint(run);
  const auto with = [&](const std::string& key, const std::string& value) {
    std::vector<NamedBytes> files;
    for (const auto& [name, bytes] : good.files) {
      files.push_back({name, bytes});
      if (name != "state.json") continue;
      const size_t at = bytes.find("\"" + key + "\": ") + key.size() + 4;
      files.back().bytes.replace(at, bytes.find_first_of(",\n", at) - at, value);
    }
    write_checkpoint(run, good.step, files);
    train_session(run, tiny());
  };
  for (const char* key : {"step", "epoch", "position", "tick", "draws"}) {
    CHECK(fault_of([&] { with(key, "-1"); }) == Fault::data);
    CHECK_THROWS_WITH(with(key, "-1"), containing("state.json, bytes 0-") && containing(key));
    CHECK_THROWS_WITH(with(key, "\"1\""), containing("state.json, bytes 0-"));
  }
  CHECK_THROWS_WITH(with("position", "1000000"), containing("position is 1000000"));
}

TEST_CASE("trainer: callbacks are called at their places, and change nothing by listening") {
  struct Listener final : TrainCallback {
    explicit Listener(bool in_steps) : inside(in_steps) {}
    bool inside_steps() const override { return inside; }
    void before_step(const TrainContext& at, StepBatches& batches) override {
      said += text("before ", at.step, " of ", batches.count(), "; ");
    }
    void after_backward(const TrainContext& at) override {
      bool any = false;
      for (const Named& one : parameters(at.model)) any = any || static_cast<bool>(grad_of(*one.tensor));
      said += any ? "backward; " : "no gradient; ";
    }
    void after_step(const TrainContext&, const StepResult& done) override {
      said += done.loss > 0 && done.norm > 0 && done.rate > 0 && done.tokens > 0 ? "step; " : "bad step; ";
    }
    void after_validation(const TrainContext&, const Scores& scores) override {
      said += text(scores.list.at(0).first, "; ");
    }
    void after_save(const TrainContext& at) override { said += text("saved ", at.step, "; "); }
    bool inside;
    std::string said = {};
  };
  Scratch scratch;
  const Settings settings{
      {"train.max_steps", "2"}, {"train.validate_every", "2"}, {"train.checkpoint_every", "1"}};
  train_session(scratch / "alone", tiny(settings));
  Listener inside(true), outside(false);
  Config config = tiny(settings);
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "heard", .command = "test"});
  io::write(folder.config(), to_toml(config));
  config.task->load(config, {}, [](const std::string&) {});
  Progress progress;
  progress.quiet = true;
  Trainer(config, folder, std::nullopt, progress, single_process(), {&inside, &outside}).run();
  CHECK(inside.said ==
        "before 1 of 2; backward; step; saved 1; before 2 of 2; backward; step; loss; saved 2; ");
  CHECK(outside.said == "step; saved 1; step; loss; saved 2; ");
  check_same(scratch / "alone", scratch / "heard", 2);
}
