// A small run for tests of the trainer: its config, a sitting, and what it leaves behind.
#pragma once

#include <csignal>
#include <set>
#include <thread>

#include "core/io.h"
#include "tests/catch.h"
#include "train/checkpoint.h"
#include "train/commands/loaded_run.h"
#include "train/trainer.h"

namespace heed {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// About 12 batches an epoch, 2 a step: 12 steps are two epochs.
inline Config tiny(const Settings& more = {}) {
  Config config = make_config("translate");
  const Settings settings{{"data.pairs", "300"},        {"data.validation", "12"},
                          {"data.test", "8"},           {"data.bleu_pairs", "2"},
                          {"model.width", "16"},        {"model.heads", "2"},
                          {"model.feed_forward", "16"}, {"model.max_length", "32"},
                          {"model.dropout", "0.2"},     {"model.attention_dropout", "0.1"},
                          {"train.steps", "12"},        {"train.batch_tokens", "200"},
                          {"train.accumulate", "2"},    {"train.warmup", "4"},
                          {"train.rate", "1e-2"},       {"train.validate_every", "3"}};
  for (const Settings& list : {settings, more}) {
    for (const auto& [key, value] : list) config.set(key, value, "");
  }
  config.check();
  return config;
}

/// Another task that sends SIGTERM from a thread of its own when batch number `at` is asked for.
class StopAt final : public Task {
 public:
  StopAt(std::unique_ptr<Task> inner, int64_t at) : inner_(std::move(inner)), at_(at) {}
  void fields(Fields& f) override { inner_->fields(f); }
  void load(const Config& c, const std::vector<NamedBytes>& s,
            const std::function<void(const std::string&)>& say) override {
    inner_->load(c, s, say);
  }
  void load_sealed(const Config& c, const std::vector<NamedBytes>& s) override { inner_->load_sealed(c, s); }
  std::unique_ptr<Module> model(const Config& c, Rng& rng) const override { return inner_->model(c, rng); }
  std::vector<NamedBytes> sealed() const override { return inner_->sealed(); }
  std::vector<std::pair<std::string, std::string>> facts() const override { return inner_->facts(); }
  int64_t plan(int64_t epoch) override { return inner_->plan(epoch); }
  Batch batch(int64_t position) const override {
    if (asked_++ == at_) std::thread([] { ::kill(::getpid(), SIGTERM); }).join();
    return inner_->batch(position);
  }
  double weight(int64_t position) const override { return inner_->weight(position); }
  std::vector<std::string> parts() const override { return inner_->parts(); }
  Tensor loss(Module& m, const Batch& b, const Pass& p) const override { return inner_->loss(m, b, p); }
  Scores validate(Module& m) const override { return inner_->validate(m); }
  Evaluation test(Module& m, const DecodeOptions& d) const override { return inner_->test(m, d); }
  std::vector<MapView> maps(Module& m, const std::string& t, std::string& c) const override {
    return inner_->maps(m, t, c);
  }

 private:
  std::unique_ptr<Task> inner_;
  int64_t at_;
  mutable int64_t asked_ = 0;
};

/// One sitting in a folder: a new run, or the one that is there. `stop_at`: batches until a signal comes;
/// below 0: none.
inline Outcome sit(const Path& run, Config config, int64_t stop_at = -1, const std::string& which = "last") {
  const bool there = io::exists(run);
  RunFolder folder =
      there
          ? RunFolder::resume(run, "test")
          : RunFolder::create({.out = run.parent_path(), .name = run.filename().string(), .command = "test"});
  if (!there) io::write(folder.config(), to_toml(config));
  std::optional<Checkpoint> from;
  if (!list_checkpoints(run).empty()) from = open_checkpoint(run, which);
  config.task->load(config, from ? sealed_files(*from) : std::vector<NamedBytes>{},
                    [](const std::string&) {});
  Progress progress;
  progress.quiet = true;
  Trainer trainer(config, folder, from, progress);
  if (stop_at >= 0) config.task = std::make_unique<StopAt>(std::move(config.task), stop_at);
  return trainer.run();
}

inline std::string bytes_of(const Path& run, int64_t step, const std::string& name) {
  return io::read(checkpoint_folder(run, step) / name);
}

/// state.json without the clock.
inline std::string state_of(const Path& run, int64_t step) {
  Json state = parse_json(bytes_of(run, step, "state.json"), "state");
  return state.set("seconds", 0).dump();
}

/// Every logged number but speed and time, as text.
inline std::set<std::string> metrics_of(const Path& run) {
  std::set<std::string> out;
  for (const MetricSeries& series : read_metrics(run / "metrics.jsonl")) {
    for (size_t i = 0; i < series.steps.size(); ++i) {
      if (i > 0) CHECK(series.steps[i] > series.steps[i - 1]);  // each once, in order
      if (series.name != "tokens_per_second" && series.name != "seconds")
        out.insert(text(series.name, " ", series.steps[i], " ", series.values[i]));
    }
  }
  return out;
}

inline void check_same(const Path& one, const Path& other, int64_t step) {
  CHECK((bytes_of(one, step, "model.safetensors") == bytes_of(other, step, "model.safetensors")));
  CHECK((bytes_of(one, step, "optim.safetensors") == bytes_of(other, step, "optim.safetensors")));
  CHECK(state_of(one, step) == state_of(other, step));
  CHECK(best_step(one) == best_step(other));
  CHECK(metrics_of(one) == metrics_of(other));
}

}  // namespace heed
