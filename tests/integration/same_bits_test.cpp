// One seed gives the same bits: every preset, any number of threads.
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_presets.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

namespace {

/// Small, but large enough that products, sums and updates are cut into pieces for several threads.
Config in_pieces(const std::string& preset) {
  return small_preset(preset, 3,
                      {{"translate:data.num_examples", 250},
                       {"mnist:data.num_examples", 200},
                       {"data.fixed_length", 64},
                       {"model.d_model", 64},
                       {"model.max_length", 64},
                       {"model.d_ff", 256},
                       {"train.batch_size", 16},
                       {"train.batch_tokens", 1024}});
}

void train(Config& config, const Path& run) {
  RunFolder folder = RunFolder::create({.out = run.parent_path(), .name = run.filename().string()});
  Progress progress;
  progress.quiet = true;
  CHECK(Trainer(config, folder, std::nullopt, progress).run().step == 3);
}

/// Loss, gradient norm and validation of each step, weights and moments.
void check_any_threads(Config config) {
  Scratch scratch;
  config.task->load(config, {}, [](const std::string&) {});
  const int before = threads();
  set_threads(1);
  train(config, scratch / "alone");
  CHECK(metrics_of(scratch / "alone").size() >= 3 * 3 + 1);
  for (const int count : {2, 3, 4, 8}) {
    CAPTURE(count);
    set_threads(count);
    const Path run = scratch / std::to_string(count);
    train(config, run);
    check_same(scratch / "alone", run, 3);
  }
  set_threads(before);
}

}  // namespace

TEST_CASE("same bits: every preset with 1, 2, 3, 4 and 8 threads", "[slow]") {
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    check_any_threads(in_pieces(preset.name));
  }
}

TEST_CASE("same bits: the other precisions, with dropout and accumulation, and any number of threads",
          "[slow]") {
  for (const char* precision : {"f64", "bf16"}) {
    CAPTURE(precision);
    Config config = in_pieces("translate");
    config.set("train.precision", precision, "");
    config.set("model.dropout", "0.2", "");
    config.set("model.attention_dropout", "0.1", "");
    config.set("train.grad_accumulation", "2", "");
    check_any_threads(std::move(config));
  }
}

TEST_CASE("same bits: muon, lion and schedule-free AdamW with any number of threads", "[slow]") {
  for (const char* optimizer : {"muon", "lion", "schedule_free"}) {
    CAPTURE(optimizer);
    Config config = in_pieces("translate");
    config.set("train.optimizer", optimizer, "");
    config.set("train.schedule", "constant", "");
    check_any_threads(std::move(config));
  }
}

TEST_CASE("same bits: single and double precision begin with the same weights and stay near each other") {
  Scratch scratch;
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    std::vector<double> losses[2];
    for (const char* precision : {"f32", "f64"}) {
      Config config = small_preset(preset.name, 3);
      for (const char* key : {"model.dropout", "model.attention_dropout"}) config.set(key, "0", "");
      config.set("train.precision", precision, "");
      config.task->load(config, {}, [](const std::string&) {});
      const Path run = scratch / text(preset.name, "-", precision);
      train(config, run);
      for (const MetricSeries& series : read_metrics(run / "metrics.jsonl")) {
        if (series.name == "loss") losses[std::string(precision) == "f64"] = series.values;
      }
    }
    REQUIRE(losses[0].size() == 3);
    CHECK(losses[0] != losses[1]);  // or nothing was widened
    for (size_t step = 0; step < 3; ++step) CHECK(losses[0][step] == Approx(losses[1][step]).epsilon(2e-6));
  }
}
