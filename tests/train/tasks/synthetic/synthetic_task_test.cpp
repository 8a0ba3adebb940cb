// Tasks of generated sequences: batches, loss, accuracies, baselines, refusals, and trainings that learn.
#include "heed/train/tasks/synthetic/synthetic_task.h"

#include <algorithm>
#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/score_after_training.h"
#include "heed/train/tasks/synthetic/sequence_autoencoder.h"

using namespace heed;

namespace {

using SyntheticSettings = std::vector<std::pair<std::string, std::string>>;

/// A config of a preset with other settings, checked and loaded.
Config synthetic(const std::string& preset, const SyntheticSettings& settings = {}) {
  Config config = make_config(preset);
  for (const auto& [key, value] : settings) config.set(key, value, "");
  config.check();
  config.task->load(config, {}, [](const std::string&) {});
  config.task->plan(0);
  return config;
}

/// Settings of mqar that a CPU learns within seconds.
const SyntheticSettings small_mqar{{"data.vocabulary", "32"}, {"data.length", "16"}, {"data.kv_pairs", "2"}};

std::unique_ptr<Module> model_of(const Config& config) {
  Rng rng(1);
  return config.task->model(config, rng);
}

double baseline(const Task& task, const std::string& name) {
  for (const ScoreBaseline& one : task.baselines())
    if (one.baseline == name) return one.value;
  FAIL("no baseline is called " << name);
  return 0;
}

}  // namespace

TEST_CASE("synthetic: a batch has ids, targets, and the places that they belong to") {
  for (const std::string preset : {"mqar", "mad-recall", "mad-noisy", "mad-fuzzy", "mad-copy", "mad-compress",
                                   "mad-memorize", "induction"}) {
    CAPTURE(preset);
    const Config config = synthetic(preset, {{"train.batch_size", "6"}});
    const Batch batch = config.task->batch(1);
    REQUIRE(batch.tensors.size() == config.task->tensor_names().size());
    REQUIRE(batch[0].extent(0) == 6);
    const std::vector<double> ids = batch[0].to_doubles(), targets = batch[1].to_doubles(),
                              places = batch[2].to_doubles();
    REQUIRE(targets.size() == places.size());
    CHECK(batch.weight == static_cast<double>(targets.size()));
    CHECK(config.task->weight(1) == batch.weight);
    CHECK(batch.tokens == batch[0].size());
    CHECK(std::is_sorted(places.begin(), places.end()));
    CHECK(places.back() < static_cast<double>(ids.size()));
    for (const double target : targets) CHECK(target >= 0);
  }
}

TEST_CASE("synthetic: the targets of mqar are the values behind the keys at their places") {
  const Config config = synthetic("mqar", {{"train.batch_size", "50"}});
  const Batch batch = config.task->batch(0);
  const std::vector<double> ids = batch[0].to_doubles(), targets = batch[1].to_doubles(),
                            places = batch[2].to_doubles();
  REQUIRE(targets.size() == 200);
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]), begin = place / 64 * 64;
    double value = -1;
    for (size_t pair = begin; pair < begin + 8; pair += 2)
      if (ids[pair] == ids[place]) value = ids[pair + 1];
    CHECK(value == targets[i]);
  }
}

TEST_CASE("synthetic: the loss is the mean cross entropy of the scored places alone") {
  for (const std::string preset : {"mqar", "mad-copy", "mad-recall", "mad-compress"}) {
    CAPTURE(preset);
    const Config config =
        synthetic(preset, {{"model.d_model", "16"}, {"model.heads", "1"}, {"train.batch_size", "3"}});
    const auto model = model_of(config);
    const Batch batch = config.task->batch(0);
    const NoGrad no_grad;
    Tensor logits;
    if (auto* decoder = dynamic_cast<DecoderOnly*>(model.get()))
      logits = (*decoder)(batch[0], {});
    else if (auto* coder = dynamic_cast<SequenceAutoencoder*>(model.get()))
      logits = coder->logits(coder->hidden(batch[0], {}));
    const std::vector<float> values = log_softmax(logits).to_host();
    const std::vector<double> targets = batch[1].to_doubles(), places = batch[2].to_doubles();
    double sum = 0;
    for (size_t i = 0; i < targets.size(); ++i)
      sum -= values[static_cast<size_t>(places[i]) * static_cast<size_t>(logits.extent(2)) +
                    static_cast<size_t>(targets[i])];
    const double mean = sum / static_cast<double>(targets.size());
    CHECK(config.task->loss(*model, batch, {}).item() == Approx(mean).epsilon(1e-4));
  }
}

TEST_CASE("synthetic: shards make up the batch, with its weight") {
  Config config = synthetic("mqar", {{"train.batch_size", "5"}, {"data.length", "32"}});
  const Batch whole = config.task->batch(2);
  std::vector<double> ids, targets;
  for (int64_t part = 0; part < 2; ++part) {
    const Batch shard = config.task->shard(2, {part, 2});
    CHECK(shard.whole_weight == whole.weight);
    const std::vector<double> shard_ids = shard[0].to_doubles(), shard_targets = shard[1].to_doubles();
    ids.insert(ids.end(), shard_ids.begin(), shard_ids.end());
    targets.insert(targets.end(), shard_targets.begin(), shard_targets.end());
    for (const double place : shard[2].to_doubles()) CHECK(place < static_cast<double>(shard_ids.size()));
  }
  CHECK(ids == whole[0].to_doubles());
  CHECK(targets == whole[1].to_doubles());
}

TEST_CASE("synthetic: an epoch has each training sequence once, in another order than the next") {
  Config config = synthetic("mqar", {{"train.batch_size", "4"}, {"data.num_examples", "10"}});
  const auto epoch = [&](int64_t number) {
    std::vector<std::vector<double>> out;
    REQUIRE(config.task->plan(number) == 3);
    for (int64_t position = 0; position < 3; ++position) {
      const Batch batch = config.task->batch(position);
      CHECK(batch[0].extent(0) == (position < 2 ? 4 : 2));
      const std::vector<double> ids = batch[0].to_doubles();
      for (auto row = ids.begin(); row != ids.end(); row += 64) out.emplace_back(row, row + 64);
    }
    return out;
  };
  std::vector<std::vector<double>> first = epoch(0), second = epoch(1);
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == second);
  CHECK(std::adjacent_find(first.begin(), first.end()) == first.end());
  // Without an end, no sequence returns.
  config = synthetic("mqar", {{"train.batch_size", "4"}, {"data.num_examples", "0"}});
  const std::vector<double> one = config.task->batch(0)[0].to_doubles();
  config.task->plan(1);
  CHECK(one != config.task->batch(0)[0].to_doubles());
}

TEST_CASE("synthetic: accuracies are counted by places, and as MAD does by tokens and batches") {
  // Predictions 0, 0, 1, 3 of targets 0, 1, 1, 1; then a batch of one sequence in place of three, all right.
  const std::vector<float> rows{5, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 5};
  const std::vector<int32_t> wanted{0, 1, 1, 1}, zeros{0, 0};
  const Tensor logits = Tensor::of<float>(rows, Shape{4, 4}), targets = Tensor::of<int32_t>(wanted, Shape{4}),
               right = Tensor::of<int32_t>(zeros, Shape{2});
  AnswerTally places(AccuracyKind::places, 4), tokens(AccuracyKind::tokens_of_batches, 4);
  for (AnswerTally* tally : {&places, &tokens}) {
    tally->add(logits, targets, 3);
    tally->add(slice(logits, 0, 0, 2), right, 1);
  }
  CHECK(places.scores().first() == Approx(4.0 / 6));
  CHECK(!places.scores().find("micro_accuracy"));
  CHECK(!places.scores().lower_is_better);
  // Token 0: 1 of 1; token 1: 1 of 3; token 3: predicted, but no target: 0. Their mean is 4 / 9.
  CHECK(tokens.scores().first() == Approx((3 * 4.0 / 9 + 1) / 4));
  CHECK(*tokens.scores().find("micro_accuracy") == Approx(4.0 / 6));
  const double sure = std::log(1 + 3 * std::exp(-5.0));
  CHECK(*places.scores().find("loss") == Approx(sure + 2 * 5.0 / 6));
}

TEST_CASE("synthetic: baselines are those of guessing") {
  const Config mqar = synthetic("mqar", {{"data.validation", "200"}, {"data.test_size", "300"}});
  CHECK(baseline(*mqar.task, "any answer") == Approx(1.0 / 4096));
  CHECK(baseline(*mqar.task, "an answer that the sequence holds") == Approx(1.0 / 4));
  CHECK(baseline(*mqar.task, "the commonest answer") < 0.01);
  const Config memorize = synthetic("mad-memorize");
  CHECK(baseline(*memorize.task, "any answer") == Approx(1.0 / 128));
  for (const ScoreBaseline& one : memorize.task->baselines())
    CHECK(one.baseline != "an answer that the sequence holds");  // sequences hold no values
  const Config copy = synthetic("mad-copy");
  CHECK(baseline(*copy.task, "any answer") == Approx(1.0 / 14));
  CHECK(baseline(*copy.task, "the commonest answer") == Approx(1.0 / 14).margin(0.01));
}

TEST_CASE("synthetic: what cannot be is refused with its setting") {
  const auto refused = [](const std::string& preset, const std::string& key, const std::string& value,
                          const std::string& words) {
    CAPTURE(preset, key, value);
    CHECK_THROWS_WITH(synthetic(preset, {{key, value}}), containing(words));
  };
  refused("mqar", "data.kv_pairs", "17", "data.kv_pairs = 17");
  refused("mqar", "data.length", "63", "data.length = 63");
  refused("mqar", "data.vocabulary", "8", "data.kv_pairs = 4, but there are 3 keys");
  refused("mqar", "data.vocabulary", "31", "data.vocabulary = 31");
  refused("mqar", "data.alpha", "1.5", "data.alpha = 1.5");
  refused("mqar", "model.max_length", "32", "model.max_length = 32");
  refused("mqar", "train.batch_size", "0", "train.batch_size = 0");
  refused("mqar", "attention.decoder", "linformer", "attention 'linformer' cannot look back only");
  refused("mad-recall", "data.length", "127", "data.length = 127");
  refused("mad-noisy", "data.noise", "1", "data.noise = 1");
  refused("mad-noisy", "data.noise_vocabulary", "30", "data.vocabulary = 32");
  refused("mad-fuzzy", "data.length", "12", "data.length = 12");
  refused("mad-fuzzy", "data.max_key", "9", "data.vocabulary = 16");
  refused("mad-copy", "data.length", "33", "data.length = 33");
  refused("mad-memorize", "data.length", "31", "data.length = 31");
  refused("induction", "data.longest_test", "32", "data.longest_test = 32");
  refused("induction", "data.longest_test", "4096", "model.max_length = 1024");
}

TEST_CASE("synthetic: induction is scored at longer lengths, too") {
  Config config = synthetic("induction", {{"data.length", "16"},
                                          {"data.longest_test", "128"},
                                          {"data.test_size", "8"},
                                          {"model.d_model", "16"},
                                          {"model.heads", "2"}});
  const auto model = model_of(config);
  const Scores scores = config.task->test(*model, {}).scores;
  CHECK(scores.find("accuracy_64"));
  CHECK(scores.find("accuracy_128"));
  CHECK(!scores.find("accuracy_256"));
}

TEST_CASE("synthetic: an autoencoder decodes from the state of the last token alone") {
  const Config config = synthetic("mad-compress", {{"model.d_model", "16"}, {"model.heads", "2"}});
  const auto model = model_of(config);
  auto& coder = dynamic_cast<SequenceAutoencoder&>(*model);
  CHECK(coder.logits(coder.hidden(config.task->batch(0)[0], {})).shape() == Shape{128, 32, 16});
  for (const Named& one : parameters(*model)) CHECK(one.name.find("encoder.norm") == std::string::npos);
  check_listed(*model, config.task->loss(*model, config.task->batch(0), {}));
}

TEST_CASE("synthetic: attention learns mqar within seconds, and guessing among values is beaten", "[slow]") {
  SyntheticSettings settings = small_mqar;
  settings.insert(settings.end(), {{"model.d_model", "32"},
                                   {"model.max_length", "16"},
                                   {"model.short_convolution", "2"},
                                   {"model.position", "none"},
                                   {"train.epochs", "0"},
                                   {"train.max_steps", "400"},
                                   {"train.batch_size", "64"},
                                   {"train.learning_rate", "1e-2"},
                                   {"data.validation", "100"},
                                   {"data.test_size", "500"}});
  CHECK(score_after_training(synthetic("mqar", settings)) > 0.95);
  settings.emplace_back("attention.decoder", "fastmax:p=0");  // a mean of all values
  CHECK(score_after_training(synthetic("mqar", settings)) < 0.8);
}

TEST_CASE("synthetic: memorization ends in the weights", "[slow]") {
  CHECK(score_after_training(synthetic("mad-memorize", {{"data.vocabulary", "32"},
                                                        {"model.d_model", "32"},
                                                        {"model.heads", "2"},
                                                        {"model.d_ff", "64"},
                                                        {"train.batch_size", "16"},
                                                        {"train.epochs", "15"},
                                                        {"train.learning_rate", "3e-3"},
                                                        {"data.validation", "20"},
                                                        {"data.test_size", "100"}})) > 0.95);
}
