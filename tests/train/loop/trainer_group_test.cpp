// Several processes train one run: losses of one process, bit identity, and endings that all agree on.
#include <cmath>

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/thread_group.h"
#include "heed/tests/train/small_presets.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/run/checkpoint_tokenizers.h"

using namespace heed;

namespace {

using Make = std::function<Config()>;

/// One session of `members` in a folder, begun or resumed; with a fault planted, if one is named.
TrainResult sit_together(const Path& run, int64_t members, const Make& make, const std::string& fault = "") {
  const bool there = io::exists(run);
  std::optional<Checkpoint> from;
  if (there && !list_checkpoints(run).empty()) from = open_checkpoint(run, "last");
  TrainResult outcome;
  as_members(members, [&](ProcessGroup& group) {
    std::optional<RunFolder> folder;
    Config config = make();
    if (!group.is_main())
      folder = RunFolder::elsewhere(run);
    else if (there)
      folder = RunFolder::resume(run, "test");
    else
      folder =
          RunFolder::create({.out = run.parent_path(), .name = run.filename().string(), .command = "test"});
    if (group.is_main() && !there) io::write(folder->config(), to_toml(config));
    config.task->load(config, from ? tokenizer_files(*from) : std::vector<NamedBytes>{},
                      [](const std::string&) {});
    Progress progress;
    progress.quiet = true;
    std::optional<FaultInjection> planted;
    std::vector<TrainCallback*> callbacks;
    if (!fault.empty()) callbacks.push_back(&planted.emplace(fault));
    Trainer trainer(config, *folder, from, progress, group, callbacks);
    const TrainResult mine = trainer.run();
    if (group.is_main()) outcome = mine;
  });
  return outcome;
}

std::vector<double> series(const Path& run, const std::string& name) {
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    if (one.name == name) return one.values;
  }
  return {};
}

/// The largest difference of two series, relative to the second; infinite where they are not as long.
double distance(const Path& one, const Path& other, const std::string& name) {
  const std::vector<double> a = series(one, name), b = series(other, name);
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double maximum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    maximum = std::max(maximum, std::abs(a[i] - b[i]) / std::max(std::abs(b[i]), 1e-3));
  }
  return maximum;
}

Make of_preset(const std::string& name, const Settings& more) {
  return [=] {
    Config config = small_preset(name, 6);
    for (const auto& [key, value] : more) config.set(key, value, "");
    config.check();
    return config;
  };
}

void check_like_one(const Make& make, int64_t members, double maximum) {
  const Scratch scratch;
  Config config = make();
  train_session(scratch / "one", make());
  sit_together(scratch / "several", members, make);
  CAPTURE(series(scratch / "one", "loss"), series(scratch / "several", "loss"));
  for (const char* name : {"loss", "gradient_norm", "valid_loss"})
    CHECK(distance(scratch / "several", scratch / "one", name) < maximum);
}

}  // namespace

TEST_CASE("group: the losses of the translator, a classifier and a language model are those of one process",
          "[slow]") {
  const Settings wide{{"train.precision", "f64"},
                      {"model.dropout", "0.2"},
                      {"model.attention_dropout", "0.1"},
                      {"train.batch_tokens", "160"}};
  for (const int64_t members : {2, 3}) {
    for (const char* preset : {"translate", "mnist", "lm"}) {
      CAPTURE(preset, members);
      check_like_one(of_preset(preset, wide), members, 1e-10);
    }
  }
  Settings plain = wide;
  plain[0].second = "f32";
  for (const char* preset : {"translate", "mnist", "lm"}) {
    CAPTURE(preset);
    check_like_one(of_preset(preset, plain), 2, 1e-5);
  }
}

TEST_CASE("group: so are those of long inputs, of accumulated batches and of other attentions", "[slow]") {
  const Settings wide{
      {"train.precision", "f64"}, {"model.dropout", "0.2"}, {"model.attention_dropout", "0.1"}};
  const auto with = [&](Settings more) {
    more.insert(more.begin(), wide.begin(), wide.end());
    return more;
  };
  check_like_one(of_preset("lra-text", wide), 2, 1e-10);
  check_like_one(of_preset("lra-listops", wide), 2, 1e-10);
  check_like_one(of_preset("translate-seq2seq", with({{"model.layers", "2"}, {"model.dropout", "0.3"}})), 2,
                 1e-10);
  check_like_one([&] { return tiny({{"train.precision", "f64"}}); }, 2, 1e-10);  // two batches a step
  // The rows of documents lie apart, so their dropout is another.
  check_like_one(of_preset("lra-retrieval", {{"train.precision", "f64"}, {"model.dropout", "0"}}), 2, 1e-10);
  for (const char* attention : {"window", "fastmax:p=2", "linformer", "linear"}) {
    CAPTURE(attention);
    check_like_one(of_preset("mnist", with({{"attention.encoder", attention}})), 2, 1e-10);
  }
}

TEST_CASE("group: members without a row of a batch wait for the others") {
  check_like_one(of_preset("mnist", {{"train.precision", "f64"}, {"train.batch_size", "2"}}), 3, 1e-10);
  // What they have not drawn moves nobody's dropout in the next batch of the step.
  check_like_one(of_preset("mnist", {{"train.precision", "f64"},
                                     {"train.batch_size", "2"},
                                     {"train.grad_accumulation", "3"},
                                     {"model.dropout", "0.3"}}),
                 3, 1e-10);
}

TEST_CASE("group: the same bits each time, and after a stop, other numbers of members go on") {
  const Scratch scratch;
  const Make make = [] { return tiny(); };
  const Make hurried = [] { return tiny({{"train.time_limit", "1e-6"}}); };
  sit_together(scratch / "once", 2, make);
  sit_together(scratch / "again", 2, make);
  check_same(scratch / "once", scratch / "again", 12);
  // A time limit ends the first session after a step, with a validation that the others do not have.
  CHECK(sit_together(scratch / "stopped", 2, hurried).step == 1);
  CHECK(sit_together(scratch / "stopped", 2, make).step == 12);
  CHECK((bytes_of(scratch / "once", 12, "model.safetensors") ==
         bytes_of(scratch / "stopped", 12, "model.safetensors")));
  CHECK((bytes_of(scratch / "once", 12, "optim.safetensors") ==
         bytes_of(scratch / "stopped", 12, "optim.safetensors")));
  CHECK(sit_together(scratch / "other", 3, hurried).step == 1);
  CHECK(sit_together(scratch / "other", 2, make).step == 12);
  CHECK(distance(scratch / "other", scratch / "once", "gradient_norm") < 1e-3);
}

TEST_CASE("group: a value that is not finite ends all members at once and names the one that met it") {
  for (const char* fault : {"gradient@3", "parameter@3", "gradient:inf@3"}) {
    for (const char* anomaly : {"false", "true"}) {
      CAPTURE(fault, anomaly);
      const Scratch scratch;
      try {
        sit_together(
            scratch / "run", 2,
            [&] {
              return tiny({{"train.detect_anomaly", anomaly}});
            },
            fault);
        FAIL("the run went on");
      } catch (const CollectiveError& error) {
        CHECK(error.fault() == Fault::numeric);
        CHECK(std::string(error.what()).find(" at step 3: process 2 of 2 on ") != std::string::npos);
        CHECK(std::string(error.what()).find("first bad value in ") != std::string::npos);
      }
    }
  }
}

TEST_CASE("group: a skipped step is skipped by all, and the run goes on") {
  const Scratch scratch;
  const auto make = [&] { return tiny({{"train.on_nan", "skip"}}); };
  const TrainResult outcome = sit_together(scratch / "run", 2, make, "gradient@5");
  CHECK(outcome.skipped == 1);
  CHECK(outcome.step == 12);
  CHECK(train_session(scratch / "one", make(), -1, "last", "gradient@5").skipped == 1);
  CHECK(distance(scratch / "run", scratch / "one", "gradient_norm") < 1e-3);
}
