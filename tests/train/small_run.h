// A small run for trainer tests: its config, one session, and its results.
#pragma once

#include <csignal>
#include <set>
#include <thread>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/faults/fault_injection.h"
#include "heed/train/loop/trainer.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/session_maps.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// About 12 batches per epoch, 2 per step: 12 steps are two epochs.
inline Config tiny(const Settings& more = {}) {
  Config config = make_config("translate");
  const Settings settings{{"data.num_examples", "300"},
                          {"data.validation", "12"},
                          {"data.test_size", "8"},
                          {"data.bleu_pairs", "2"},
                          {"model.d_model", "16"},
                          {"model.heads", "2"},
                          {"model.d_ff", "16"},
                          {"model.max_length", "32"},
                          {"model.dropout", "0.2"},
                          {"model.attention_dropout", "0.1"},
                          {"train.max_steps", "12"},
                          {"train.batch_tokens", "200"},
                          {"train.grad_accumulation", "2"},
                          {"train.warmup_steps", "4"},
                          {"train.learning_rate", "1e-2"},
                          {"train.validate_every", "3"}};
  for (const Settings& list : {settings, more}) {
    for (const auto& [key, value] : list) config.set(key, value, "");
  }
  config.check();
  return config;
}

/// A task that wraps another and sends SIGTERM from a new thread at batch number `at`.
class StopAt final : public Task, public MapProvider {
 public:
  StopAt(std::unique_ptr<Task> inner, int64_t at) : inner_(std::move(inner)), at_(at) {}
  void fields(Fields& f) override { inner_->fields(f); }
  void model_fields(Fields& f) override { inner_->model_fields(f); }
  void load(const Config& c, const std::vector<NamedBytes>& s,
            const std::function<void(const std::string&)>& say) override {
    inner_->load(c, s, say);
  }
  void load_artifacts(const Config& c, const std::vector<NamedBytes>& s) override {
    inner_->load_artifacts(c, s);
  }
  std::unique_ptr<Module> model(const Config& c, Rng& rng) const override { return inner_->model(c, rng); }
  std::vector<NamedBytes> artifacts() const override { return inner_->artifacts(); }
  std::vector<std::pair<std::string, std::string>> metadata() const override { return inner_->metadata(); }
  int64_t plan(int64_t epoch) override { return inner_->plan(epoch); }
  Batch batch(int64_t position) const override {
    if (asked_++ == at_) std::thread([] { ::kill(::getpid(), SIGTERM); }).join();
    return inner_->batch(position);
  }
  double weight(int64_t position) const override { return inner_->weight(position); }
  std::vector<std::string> tensor_names() const override { return inner_->tensor_names(); }
  Tensor loss(Module& m, const Batch& b, const ForwardContext& p) const override {
    return inner_->loss(m, b, p);
  }
  Scores validate(Module& m) const override { return inner_->validate(m); }
  Evaluation test(Module& m, const DecodeOptions& d) const override { return inner_->test(m, d); }
  std::vector<MapView> maps(Module& m, const std::string& t, std::string& c) const override {
    return map_provider(*inner_).maps(m, t, c);
  }

 private:
  std::unique_ptr<Task> inner_;
  int64_t at_;
  mutable int64_t asked_ = 0;
};

/// One session in a folder: a new run, or the one that is there. `stop_at`: batches until a signal comes;
/// below 0: none. `fault`: what is planted into it, as FaultInjection takes it; empty: nothing.
inline TrainResult train_session(const Path& run, Config config, int64_t stop_at = -1,
                                 const std::string& which = "last", const std::string& fault = "") {
  const bool there = io::exists(run);
  RunFolder folder =
      there
          ? RunFolder::resume(run, "test")
          : RunFolder::create({.out = run.parent_path(), .name = run.filename().string(), .command = "test"});
  if (!there) io::write(folder.config(), to_toml(config));
  std::optional<Checkpoint> from;
  if (!list_checkpoints(run).empty()) from = open_checkpoint(run, which);
  config.task->load(config, from ? tokenizer_files(*from) : std::vector<NamedBytes>{},
                    [](const std::string&) {});
  Progress progress;
  progress.quiet = true;
  std::optional<FaultInjection> planted;
  std::vector<TrainCallback*> callbacks;
  if (!fault.empty()) callbacks.push_back(&planted.emplace(fault));
  std::optional<MapSnapshotCallback> maps;
  if (config.train.maps_every > 0)
    callbacks.push_back(&maps.emplace(make_map_snapshot_callback(config, folder)));
  Trainer trainer(config, folder, from, progress, single_process(), callbacks);
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

/// All logged numbers except speed and time, as text.
inline std::set<std::string> metrics_of(const Path& run) {
  std::set<std::string> out;
  for (const MetricSeries& series : read_metrics(run / "metrics.jsonl")) {
    for (size_t i = 0; i < series.steps.size(); ++i) {
      if (i > 0) CHECK(series.steps[i] > series.steps[i - 1]);  // each step once, in order
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
