// Every task with every variant that fits: a few steps, scores, maps; and properties of single tasks.
#include "heed/train/tasks/task.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heed/attention/variant.h"
#include "heed/core/operation_count.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_presets.h"
#include "heed/train/config/config.h"
#include "heed/train/loop/trainer.h"
#include "heed/train/tasks/map_provider.h"
#include "heed/train/tasks/registry.h"

using namespace heed;

namespace {

/// A task with its defaults and little of everything; keys that it does not have are passed over.
Config tiny(const std::string& task, const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Config config = read_config("task = \"" + task + "\"\n", "tiny");
  std::vector<std::pair<std::string, std::string>> settings{{"data.num_examples", "60"},
                                                            {"translate:data.num_examples", "200"},
                                                            {"lm:data.num_examples", "3000"},
                                                            {"mlm:data.num_examples", "3000"},
                                                            {"data.side", "4"},
                                                            {"mqar:data.length", "16"},
                                                            {"mad:data.length", "16"},
                                                            {"mad-copy:data.copied", "4"},
                                                            {"induction:data.length", "16"},
                                                            {"data.test_size", "20"},
                                                            {"data.validation", "10"},
                                                            {"translate:data.test_size", "8"},
                                                            {"data.bleu_pairs", "2"},
                                                            {"mnist:model.patch", "14"},
                                                            {"model.d_model", "16"},
                                                            {"model.heads", "2"},
                                                            {"model.d_ff", "16"},
                                                            {"model.layers", "2"},
                                                            {"model.max_length", "16"},
                                                            {"train.max_steps", "3"},
                                                            {"train.batch_size", "6"},
                                                            {"train.learning_rate", "1e-2"},
                                                            {"train.warmup_steps", "1"}};
  settings.insert(settings.end(), more.begin(), more.end());
  std::set<std::string> known;
  for (const OptionText& option : options_of(config)) known.insert(option.name);
  for (const auto& [key, value] : settings) {
    const std::string own = key_for(task, key);
    if (known.contains(own)) config.set(own, value, "");
  }
  config.check();
  return config;
}

/// True for tasks of generated sequences: their models are causal stacks.
bool is_synthetic(const std::string& task) {
  return task == "mqar" || task == "induction" || task.starts_with("mad-");
}

void load(Config& config) {
  config.task->load(config, {}, [](const std::string&) {});
}

/// Trains and leaves the model where it is.
struct Trained {
  explicit Trained(Config made)
      : config(std::move(made)), folder(RunFolder::create({.out = scratch.path(), .name = "run"})) {
    progress.quiet = true;
    load(config);
    trainer = std::make_unique<Trainer>(config, folder, std::nullopt, progress);
    outcome = trainer->run();
  }
  Scratch scratch;
  Config config;
  RunFolder folder;
  Progress progress;
  std::unique_ptr<Trainer> trainer;
  TrainResult outcome;
};

void check_maps(const std::vector<MapView>& maps, bool exact) {
  CHECK(!maps.empty());
  for (const MapView& map : maps) {
    CAPTURE(map.name, map.kind);
    heed::check(map);
    CHECK(!map.name.empty());
    CHECK(static_cast<int64_t>(map.query_tokens.size()) == map.queries);
    CHECK(static_cast<int64_t>(map.key_tokens.size()) == map.keys);
    for (const std::string& token : map.key_tokens) CHECK(token != "[PAD]");
    for (int64_t head = 0; head < map.heads; ++head) {
      for (int64_t query = 0; query < map.queries; ++query) {
        double sum = 0;
        for (int64_t key = 0; key < map.keys; ++key) {
          sum += map.at(head, query, key);
          if (map.kind == "decoder self" && key > query) CHECK(map.at(head, query, key) == 0);
        }
        if (exact) CHECK(sum == Approx(1).margin(1e-4));
      }
    }
  }
}

}  // namespace

TEST_CASE("tasks: every task trains, scores and shows its maps with every variant that fits") {
  for (const TaskEntry& entry : tasks()) {
    for (const Variant& variant : variants()) {
      CAPTURE(entry.name, variant.traits.name);
      // All tasks of generated sequences have the batches of mqar, and all but mad-compress its model.
      const bool has_own_model = !is_synthetic(entry.name) || std::string(entry.name) == "mqar" ||
                                 std::string(entry.name) == "mad-compress";
      if (!has_own_model && std::string(variant.traits.name) != "softmax") continue;
      Config config = tiny(entry.name);
      bool exact = true, used = false;
      const auto put = [&](std::string& place, bool fits) {
        if (!fits) return;
        place = variant.traits.name;
        used = true;
        exact = exact && variant.traits.map == MapKind::exact;
      };
      const bool decodes = variant.traits.causal && variant.traits.steps;
      const bool encodes = std::string(entry.name) != "lm" && !is_synthetic(entry.name);
      put(config.attention.encoder, encodes && variant.traits.bidirectional);
      put(config.attention.decoder, decodes);
      put(config.attention.cross, variant.traits.cross && variant.traits.steps && variant.traits.padding);
      if (!used) continue;
      Trained run(std::move(config));
      CHECK(run.outcome.step == 3);
      REQUIRE(!run.outcome.best.list.empty());
      for (const auto& [name, value] : run.outcome.best.list) CHECK(std::isfinite(value));
      const Evaluation scored = run.config.task->test(run.trainer->model(), run.config.decode);
      REQUIRE(!scored.scores.list.empty());
      for (const auto& [name, value] : scored.scores.list) {
        CAPTURE(name);
        CHECK(std::isfinite(value));
      }
      if (variant.traits.map == MapKind::none) continue;
      std::string caption;
      check_maps(map_provider(*run.config.task).maps(run.trainer->model(), "", caption), exact);
      CHECK(!caption.empty());
    }
  }
}

TEST_CASE("tasks: modifiers of the model train, score and decode in every task") {
  const std::vector<std::vector<std::pair<std::string, std::string>>> ways{
      {{"model.position", "rope"}, {"model.kv_heads", "1"}, {"model.qk_norm", "rms"}},
      {{"model.position", "alibi"}, {"model.softcap", "5"}},
      {{"model.position", "t5"}, {"model.sink", "learned"}}};
  for (const TaskEntry& entry : tasks()) {
    for (const auto& way : ways) {
      CAPTURE(entry.name, way[0].second);
      Trained run(tiny(entry.name, way));
      CHECK(run.outcome.step == 3);
      const Evaluation scored = run.config.task->test(run.trainer->model(), run.config.decode);
      REQUIRE(!scored.scores.list.empty());
      for (const auto& [name, value] : scored.scores.list) CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("tasks: every preset trains when it is made small") {
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    Config config = small_preset(preset.name);
    Trained run(std::move(config));
    CHECK(run.outcome.step == 2);
    CHECK(!run.config.task->test(run.trainer->model(), run.config.decode).scores.list.empty());
  }
}

TEST_CASE("tasks: data, batches and first loss depend on the seed alone") {
  for (const TaskEntry& entry : tasks()) {
    CAPTURE(entry.name);
    const auto losses = [&](const std::string& seed) {
      Config config = tiny(entry.name, {{"train.seed", seed}});
      load(config);
      Rng rng(static_cast<uint64_t>(config.train.seed));
      const auto model = config.task->model(config, rng);
      const NoGrad no_grad;
      std::vector<double> out;
      for (const int64_t epoch : {0, 1, 0}) {
        REQUIRE(config.task->plan(epoch) >= 2);
        const Batch batch = config.task->batch(1);
        CHECK(batch.weight > 0);
        CHECK(batch.tokens > 0);
        out.push_back(config.task->loss(*model, batch, {}).item());
      }
      return out;
    };
    const std::vector<double> one = losses("1");
    CHECK(one == losses("1"));
    CHECK(one != losses("2"));
    CHECK(one[0] == one[2]);
    CHECK(one[0] != one[1]);
  }
}

TEST_CASE("tasks: a task uses the labels' smoothing while it trains, and never when it scores") {
  for (const TaskEntry& entry : tasks()) {
    CAPTURE(entry.name);
    const auto loss = [&](const std::string& smoothing, bool training) {
      Config config = tiny(
          entry.name,
          {{"train.label_smoothing", smoothing}, {"model.dropout", "0"}, {"model.attention_dropout", "0"}});
      load(config);
      Rng rng(1);
      const auto model = config.task->model(config, rng);
      config.task->plan(0);
      const NoGrad no_grad;
      return config.task->loss(*model, config.task->batch(0), {.rng = training ? &rng : nullptr}).item();
    };
    CHECK(loss("0.5", true) != loss("0", true));
    CHECK(loss("0.5", false) == loss("0", false));
    CHECK(loss("0", true) == loss("0", false));
  }
}

TEST_CASE("tasks: a tokenizer checksummed in a checkpoint is used instead of a new one") {
  for (const TaskEntry& entry : tasks()) {
    CAPTURE(entry.name);
    Config first = tiny(entry.name);
    load(first);
    const std::vector<NamedBytes> artifacts = first.task->artifacts();
    Config second = tiny(entry.name, {{"translate:data.num_examples", "100"},
                                      {"lm:data.num_examples", "2000"},
                                      {"data.min_frequency", "3"}});
    second.task->load(second, artifacts, [](const std::string&) {});
    const std::vector<NamedBytes> again = second.task->artifacts();
    REQUIRE(again.size() == artifacts.size());
    for (size_t i = 0; i < artifacts.size(); ++i) {
      CHECK(again[i].name == artifacts[i].name);
      CHECK((again[i].bytes == artifacts[i].bytes));
    }
    if (artifacts.empty()) continue;
    Config third = tiny(entry.name);
    CHECK(fault_of([&] {
            third.task->load_artifacts(third, {{"tokenizer.other.word", ""}, {"stray", ""}});
          }) == Fault::data);
  }
}

TEST_CASE("tasks: the maps of a sentence longer than the model reads are cut, not refused") {
  for (const std::string position : {"sinusoid", "learned"}) {
    Config config = tiny("translate", {{"model.position", position}});
    load(config);
    Rng rng(1);
    const auto model = config.task->model(config, rng);
    std::string sentence, caption;
    for (int i = 0; i < 60; ++i) sentence += "man ";
    const std::vector<MapView> maps = map_provider(*config.task).maps(*model, sentence, caption);
    check_maps(maps, true);
    for (const MapView& map : maps) CHECK((map.queries <= 16 && map.keys <= 16));
    check_maps(map_provider(*config.task).maps(*model, "A word nobodyknows.", caption), true);
  }
}

TEST_CASE("tasks: lm cuts its own example to the model and refuses texts that are longer") {
  for (const std::string position : {"sinusoid", "learned"}) {
    Config config = tiny("lm", {{"model.position", position}});
    load(config);
    Rng rng(1);
    const auto model = config.task->model(config, rng);
    std::string caption;
    check_maps(map_provider(*config.task).maps(*model, "", caption), true);
    CHECK_THROWS_WITH(map_provider(*config.task).maps(*model, std::string(17, 'e'), caption),
                      containing("the text has 17 tokens, and the model reads 16 at most"));
    // A sample longer than the model's reach.
    Evaluation scored = config.task->test(*model, {});
    CHECK(scored.samples.empty());  // text is written for reports alone
    config.task->add_samples(*model, scored);
    CHECK(scored.samples.at(0).hypothesis.size() >= 400);
  }
}

TEST_CASE("tasks: mnist has a confusion of all test images, both pools, and names wrong images") {
  for (const std::string pool : {"mean", "first"}) {
    Config config = tiny("mnist", {{"model.pool", pool}, {"model.head", "8"}});
    load(config);
    Rng rng(1);
    const auto model = config.task->model(config, rng);
    const Evaluation scored = config.task->test(*model, {});
    REQUIRE(scored.confusion);
    int64_t images = 0;
    for (const int64_t count : scored.confusion->counts) images += count;
    CHECK(images == 20);
    std::string caption;
    const std::vector<MapView> maps = map_provider(*config.task).maps(*model, "19", caption);
    CHECK(maps.at(0).keys == (pool == "first" ? 5 : 4));
    CHECK_THROWS_WITH(map_provider(*config.task).maps(*model, "20", caption),
                      containing("'20' is no test image. Give its number, 0 to 19."));
    CHECK_THROWS_WITH(map_provider(*config.task).maps(*model, "seven", caption), containing("'seven'"));
  }
}

TEST_CASE("tasks: mnist moves training images anew in every epoch, and no others") {
  const auto batches = [](const std::string& shift) {
    Config config = tiny("mnist", {{"data.shift", shift}, {"model.patch", "28"}, {"train.batch_size", "54"}});
    load(config);
    std::vector<std::vector<float>> out;
    for (const int64_t epoch : {0, 1, 0}) {
      CHECK(config.task->plan(epoch) == 1);
      const Batch batch = config.task->batch(0);
      // Sorted by label, the images of an epoch can be compared with those of another.
      const std::vector<float> pixels = batch.tensors[0].to_host();
      const std::vector<double> labels = batch.tensors[1].to_doubles();
      std::vector<std::pair<double, std::vector<float>>> images;
      for (size_t i = 0; i < labels.size(); ++i)
        images.emplace_back(labels[i],
                            std::vector<float>(pixels.begin() + static_cast<std::ptrdiff_t>(784 * i),
                                               pixels.begin() + static_cast<std::ptrdiff_t>(784 * (i + 1))));
      std::sort(images.begin(), images.end());
      out.emplace_back();
      for (const auto& image : images)
        out.back().insert(out.back().end(), image.second.begin(), image.second.end());
    }
    return out;
  };
  const auto still = batches("0"), moving = batches("2");
  CHECK((still[0] == still[1]));
  CHECK((moving[0] == moving[2]));
  CHECK((moving[0] != moving[1]));
  CHECK((moving[0] != still[0]));
  // Digits lie in the middle, so that moving loses next to nothing of their ink.
  const auto ink = [](const std::vector<float>& pixels) {
    double total = 0;
    for (const float pixel : pixels) total += pixel;
    return total;
  };
  CHECK(ink(moving[0]) == Approx(ink(still[0])).epsilon(0.02));
  for (const std::string shift : {"-1", "28"}) {
    CHECK_THROWS_WITH(tiny("mnist", {{"data.shift", shift}}),
                      containing("data.shift = " + shift) && containing("from 0 to 27"));
  }
}

TEST_CASE("tasks: settings that leave nothing to train or score on are refused in words") {
  const auto refused = [](const std::string& task, const std::string& key,
                          const std::string& value) -> std::string {
    try {
      Config config = tiny(task, {{key, value}});
      load(config);
    } catch (const Error& error) {
      CHECK((error.fault() == Fault::usage || error.fault() == Fault::data || error.fault() == Fault::file));
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(refused("translate", "data.num_examples", "-1"), containing("-1"));
  CHECK_THAT(refused("translate", "data.validation", "0"), containing("data.validation"));
  CHECK_THAT(refused("translate", "data.validation", "-5"), containing("-5"));
  CHECK_THAT(refused("translate", "data.validation", "500"), containing("500"));
  CHECK_THAT(refused("translate", "model.max_length", "3"), containing("model.max_length = 3"));
  CHECK_THAT(refused("translate", "data.vocabulary", "-5"), !containing("internal"));
  CHECK_THAT(refused("lm", "data.train_fraction", "1"), containing("data.train_fraction = 1"));
  CHECK_THAT(refused("lm", "data.num_examples", "15"), containing("the training text is too short"));
  CHECK_THAT(refused("lm", "data.num_examples", "-1"), containing("-1"));
  CHECK_THAT(refused("lm", "train.batch_size", "0"), containing("train.batch_size = 0"));
  CHECK_THAT(refused("mnist", "model.patch", "5"), containing("model.patch = 5"));
  CHECK_THAT(refused("mnist", "data.validation", "-1"), containing("data.validation = -1"));
  CHECK_THAT(refused("mnist", "data.num_examples", "0"), containing("0"));
  CHECK_THAT(refused("mnist", "data.path", "nowhere/at/all"), containing("nowhere/at/all"));
}

TEST_CASE("tasks: what is translated in a validation may be as much longer as decode.max_extra_tokens says") {
  const auto flops = [](const char* extra) {
    Config config = tiny("translate", {{"model.max_length", "64"}, {"decode.max_extra_tokens", extra}});
    load(config);
    Rng rng(1);
    const auto model = config.task->model(config, rng);
    const int64_t before = Count::flops();
    config.task->validate(*model);
    return Count::flops() - before;
  };
  const int64_t none = flops("1"), some = flops("10"), many = flops("40");
  CHECK(some > none);  // a model that has learned nothing finds no end
  CHECK(many > some);
}
