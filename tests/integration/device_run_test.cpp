// A whole run on a device: the CPU's numbers, and bit identity however batches and steps are queued.
#include <cstdlib>

#include "heed/tests/any_device.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_presets.h"
#include "heed/tests/train/small_run.h"
#if HEED_CUDA_EMULATED
#include "heed/core/cuda/emulator/cuda_runtime.h"
#endif

using namespace heed;

namespace {

/// An environment variable for as long as one lives.
struct Set {
  const char* name;
  Set(const char* variable, const char* value) : name(variable) { setenv(name, value, 1); }
  ~Set() { unsetenv(name); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;
};

/// Without chance, so that another padding draws nothing else.
Config quiet(const Settings& more = {}) {
  Settings settings{{"model.dropout", "0"},           {"model.attention_dropout", "0"},
                    {"train.grad_accumulation", "1"}, {"train.batch_tokens", "120"},
                    {"train.max_steps", "24"},        {"data.bleu_pairs", "0"},
                    {"train.validate_every", "12"},   {"data.num_examples", "120"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return tiny(settings);
}

/// A classifier of expressions of 5 to 89 tokens, in batches of 4.
Config expressions(const Settings& more = {}) {
  Config config = small_preset("lra-listops", 24, {{"model.max_length", 96}, {"lra:data.num_examples", 120}});
  Settings settings{{"data.shortest", "4"},
                    {"data.below", "90"},
                    {"data.depth", "4"},
                    {"model.dropout", "0"},
                    {"model.attention_dropout", "0"},
                    {"train.batch_size", "4"},
                    {"train.validate_every", "12"}};
  settings.insert(settings.end(), more.begin(), more.end());
  for (const auto& [key, value] : settings) config.set(key, value, "");
  config.check();
  return config;
}

/// The shapes of a batch's tensors, as text.
std::string shapes_of(const Batch& batch) {
  std::string shapes;
  for (const Tensor& x : batch.tensors) shapes += text(x.shape());
  return shapes;
}

std::vector<double> losses_of(const Path& run) {
  for (const MetricSeries& series : read_metrics(run / "metrics.jsonl")) {
    if (series.name == "loss") return series.values;
  }
  return {};
}

void check_close(const std::vector<double>& one, const std::vector<double>& other) {
  REQUIRE(one.size() == other.size());
  REQUIRE(one.size() >= 12);
  for (size_t i = 0; i < one.size(); ++i) {
    CAPTURE(i);
    CHECK(one[i] == Approx(other[i]).epsilon(2e-4));
  }
}

}  // namespace

TEST_CASE("device run: padding to few shapes changes no loss, and a device replays most of its steps") {
  Scratch scratch;
  train_session(scratch / "exact", quiet());
  train_session(scratch / "few", quiet({{"data.shapes", "few"}}));
  const std::vector<double> exact = losses_of(scratch / "exact");
  CHECK(exact.front() > exact.back());
  check_close(exact, losses_of(scratch / "few"));
  if (devices().size() == 1) {
    WARN("no device: " << why_no_cuda());
    return;
  }
  const DefaultDevice device(Device::cuda);
  const TrainResult seldom = train_session(scratch / "cuda-exact", quiet({{"data.shapes", "exact"}}));
  const TrainResult mostly = train_session(scratch / "cuda", quiet());
  check_close(exact, losses_of(scratch / "cuda-exact"));
  check_close(exact, losses_of(scratch / "cuda"));
  CHECK(mostly.replayed > seldom.replayed);
  CHECK(mostly.replayed >= 8);
}

TEST_CASE("device run: the same bits with batches made ahead or not, steps replayed or not") {
  if (devices().size() == 1) {
    WARN("no device: " << why_no_cuda());
    return;
  }
  const DefaultDevice device(Device::cuda);
  Scratch scratch;
  const Settings settings{{"train.max_steps", "12"}, {"model.dropout", "0.2"}};
  CHECK(train_session(scratch / "whole", quiet(settings)).replayed > 0);
  {
    const Set prefetch("HEED_PREFETCH", "off");
    train_session(scratch / "one-by-one", quiet(settings));
    check_same(scratch / "whole", scratch / "one-by-one", 12);
    const Set replay("HEED_REPLAY", "off");
    CHECK(train_session(scratch / "as-it-is", quiet(settings)).replayed == 0);
    check_same(scratch / "whole", scratch / "as-it-is", 12);
  }
  // Stopped and resumed, while batches of later steps are made already.
  CHECK(train_session(scratch / "pieces", quiet(settings), 5).stopped_by == SIGTERM);
  train_session(scratch / "pieces", quiet(settings));
  check_same(scratch / "whole", scratch / "pieces", 12);
#if HEED_CUDA_EMULATED
  for (const emulated::StreamOrder order : {emulated::StreamOrder::late, emulated::StreamOrder::early}) {
    CAPTURE(order == emulated::StreamOrder::late);
    const Path run = scratch / (order == emulated::StreamOrder::late ? "late" : "early");
    emulated::order_streams(order);
    train_session(run, quiet(settings));
    emulated::order_streams(emulated::StreamOrder::at_once);
    check_same(scratch / "whole", run, 12);
  }
#endif
}

TEST_CASE("device run: a few batches of a step are held and replayed, many are made one by one", "[slow]") {
  if (devices().size() == 1) {
    WARN("no device: " << why_no_cuda());
    return;
  }
  Scratch scratch;
  const Settings two{{"train.max_steps", "12"},
                     {"train.grad_accumulation", "2"},
                     {"train.batch_size", "4"},
                     {"data.num_examples", "60"}};
  const Settings many{{"train.max_steps", "2"},
                      {"train.grad_accumulation", "65"},
                      {"train.batch_size", "1"},
                      {"data.num_examples", "60"}};
  train_session(scratch / "cpu", quiet(many));
  const DefaultDevice device(Device::cuda);
  train_session(scratch / "held", quiet(two));
  {
    const Set prefetch("HEED_PREFETCH", "off"), replay("HEED_REPLAY", "off");
    train_session(scratch / "as-it-is", quiet(two));
    check_same(scratch / "held", scratch / "as-it-is", 12);
  }
  CHECK(train_session(scratch / "many", quiet(many)).replayed == 0);
  const std::vector<double> one = losses_of(scratch / "cpu"), other = losses_of(scratch / "many");
  REQUIRE(one.size() == 2);
  REQUIRE(other.size() == 2);
  for (size_t i = 0; i < 2; ++i) CHECK(one[i] == Approx(other[i]).epsilon(2e-4));
}

TEST_CASE("device run: a classifier leaves padding out, with the losses of the CPU") {
  Scratch scratch;
  train_session(scratch / "cpu", expressions());
  const std::vector<double> expected = losses_of(scratch / "cpu");
  if (devices().size() == 1) {
    WARN("no device: " << why_no_cuda());
    return;
  }
  const DefaultDevice device(Device::cuda);
  CHECK(train_session(scratch / "cuda", expressions()).replayed >= 4);
  check_close(expected, losses_of(scratch / "cuda"));
  for (const char* predict : {"masked", "causal"}) {
    const Settings tokens{{"data.predict", predict}};
    const std::string name = predict;
    CHECK(train_session(scratch / ("cuda-" + name), expressions(tokens)).replayed >= 4);
    const DefaultDevice cpu(Device::cpu);
    train_session(scratch / ("cpu-" + name), expressions(tokens));
    check_close(losses_of(scratch / ("cpu-" + name)), losses_of(scratch / ("cuda-" + name)));
  }
  // Replayed steps have the bits of steps op by op, whose mask of dropout is that of padded rows.
  const Settings chance{{"model.dropout", "0.2"}, {"model.attention_dropout", "0.1"}};
  CHECK(train_session(scratch / "replayed", expressions(chance)).replayed >= 4);
  const Set replay("HEED_REPLAY", "off");
  CHECK(train_session(scratch / "as-it-is", expressions(chance)).replayed == 0);
  check_same(scratch / "replayed", scratch / "as-it-is", 24);
}

TEST_CASE("device run: packed batches have few shapes, and less than half of their padding") {
  if (devices().size() == 1) {
    WARN("no device: " << why_no_cuda());
    return;
  }
  const DefaultDevice device(Device::cuda);
  for (const auto& [buckets, predict] :
       {std::pair{"true", "class"}, {"false", "class"}, {"true", "masked"}, {"true", "causal"}}) {
    Config config =
        expressions({{"data.num_examples", "4000"}, {"data.buckets", buckets}, {"data.predict", predict}});
    config.task->load(config, {}, [](const std::string&) {});
    std::set<std::string> shapes;
    int64_t batches = 0, tokens = 0, rows = 0, padded = 0;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      for (int64_t i = config.task->plan(epoch); i-- > 0; ++batches) {
        const Batch batch = config.task->batch(i);
        const int64_t inputs = batch[0].extent(0);
        shapes.insert(shapes_of(batch));
        tokens += batch.tokens;
        rows += (batch.tensors.back().size() - 5 * inputs - 2) / 2;
        padded += batch[0].size();
      }
    }
    // Processes that share a batch have tensors of equal shapes, so that they replay equal steps.
    if (std::string(predict) == "class")
      CHECK(shapes_of(config.task->shard(0, {0, 2})) == shapes_of(config.task->shard(0, {1, 2})));
    CAPTURE(buckets, predict, shapes.size(), batches, tokens, rows, padded);
    CHECK(batches == 2000);
    CHECK(shapes.size() <= 64);
    CHECK(rows >= tokens);
    CHECK(2 * (rows - tokens) < padded - tokens);
  }
}
