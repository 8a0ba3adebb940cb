// Ablation of heads: against recomputation, step by step against whole sentences, and bad input.
#include "heed/train/inspect/head_ablation.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/core/counted_work.h"
#include "heed/core/error.h"
#include "heed/nn/transformer.h"
#include "heed/tests/catch.h"
#include "heed/train/config/config.h"
#include "heed/train/inspect/head_gates.h"
#include "heed/train/tasks/example_provider.h"

using namespace heed;

namespace {

struct Loaded {
  explicit Loaded(const std::string& task, const std::vector<std::pair<std::string, std::string>>& more = {})
      : config(make_config(task)) {
    std::vector<std::pair<std::string, std::string>> settings{
        {"model.d_model", "16"}, {"model.heads", "2"}, {"model.d_ff", "16"}};
    if (task == "translate") {
      settings.insert(settings.end(), {{"data.num_examples", "300"},
                                       {"data.validation", "10"},
                                       {"data.test_size", "24"},
                                       {"model.max_length", "40"}});
    }
    settings.insert(settings.end(), more.begin(), more.end());
    for (const auto& [key, value] : settings) config.set(key, value, "");
    config.task->load(config, {}, [](const std::string&) {});
    Rng rng(4);
    model = new_model(config, rng);
  }
  Task& task() { return *config.task; }
  Config config;
  std::unique_ptr<Module> model;
};

const ModelHead& head_named(const std::vector<ModelHead>& heads, const std::string& name) {
  for (const ModelHead& head : heads)
    if (head.name == name) return head;
  FAIL("no head " << name);
  return heads[0];
}

/// The loss over all test examples, per target.
double loss_of(Loaded& loaded, HeadEditor* editor) {
  double loss = 0, targets = 0;
  for (const auto& numbers : batches_of_equal_lengths(loaded.task(), 0, 0, 8)) {
    const ExampleBatch batch = example_provider(loaded.task()).test_batch(numbers, 0);
    for (const ExampleScore& score :
         example_provider(loaded.task()).example_scores(*loaded.model, batch, {.editor = editor})) {
      loss += score.loss;
      targets += score.targets;
    }
  }
  return loss / targets;
}

/// The map of a head over the first test example, as it was used.
MapView used_map(Loaded& loaded, HeadEditor& editor, const ModelHead& head) {
  const NoGrad no_grad;
  const std::vector<int64_t> first{0};
  const ExampleBatch batch = example_provider(loaded.task()).test_batch(first, 0);
  MapRecorder recorder;
  loaded.task().loss(*loaded.model, batch.batch, {.recorder = &recorder, .editor = &editor});
  for (const MapView& map : map_views(*loaded.model, recorder, batch.rows[0], 0))
    if (map.name == name_of(*loaded.model, head.module)) return map;
  FAIL("no map");
  return {};
}

}  // namespace

TEST_CASE(
    "head ablation: a model's heads by name, cross-attention included, lists that name others are refused") {
  Loaded loaded("translate", {{"model.layers", "2"}});
  const auto heads = heads_of_model(loaded.task(), *loaded.model);
  REQUIRE(heads.size() == 12);
  CHECK(heads[0].name == "encoder.0.0");
  CHECK(named_heads(heads, "cross.1.1,encoder.0").size() == 3);
  CHECK(named_heads(heads, "encoder.0.1,encoder.0.1").size() == 1);
  CHECK_THROWS_WITH(named_heads(heads, "encoder.0.2"), containing("encoder.0.0 to encoder.0.1"));
  for (const char* list : {"", ",", "encoder", "cross.0.", "encoder.0.1,"})
    CHECK_THROWS_AS(named_heads(heads, list), Error);
}

TEST_CASE("head ablation: replacements by name") {
  for (const char* words : {"zero", "mean", "uniform", "identity", "band:w=0", "band:w=12"})
    CHECK(HeadReplacement::parse(words).name() == words);
  CHECK(HeadReplacement::parse("band").name() == "band:w=3");
  CHECK_THROWS_WITH(HeadReplacement::parse("zeros"), containing("zero"));
  for (const char* words : {"", "band:w=-1", "band:w=x", "band:width=3", "zero:w=3", "band:w="})
    CHECK_THROWS_AS(HeadReplacement::parse(words), Error);
}

TEST_CASE(
    "head ablation: by zero, the loss is that of a model without the head's columns of the projection") {
  Loaded loaded("translate");
  const auto heads = heads_of_model(loaded.task(), *loaded.model);
  for (const char* name : {"encoder.0.1", "decoder.0.0", "cross.0.1"}) {
    CAPTURE(name);
    const ModelHead& head = head_named(heads, name);
    HeadAblation ablation({});
    ablation.replace({head});
    const double ablated = loss_of(loaded, &ablation);
    Tensor& weight =
        dynamic_cast<MultiHeadAttention&>(const_cast<Module&>(*head.module)).output.weight;  // [16, 2 x 8]
    const Tensor before = weight;
    std::vector<float> values = weight.to_host();
    for (int64_t row = 0; row < 16; ++row) std::fill_n(values.begin() + row * 16 + head.head * 8, 8, 0.0F);
    weight = Tensor::from(values, weight.shape());
    CHECK(loss_of(loaded, nullptr) == Approx(ablated).epsilon(1e-6));
    weight = before;
    CHECK(std::abs(loss_of(loaded, nullptr) - ablated) > 1e-5);
  }
}

TEST_CASE("head ablation: uniform, identity and band replace the map of their head alone") {
  Loaded loaded("translate");
  const auto heads = heads_of_model(loaded.task(), *loaded.model);
  for (const char* name : {"encoder.0.1", "decoder.0.1", "cross.0.1"}) {
    CAPTURE(name);
    const ModelHead& head = head_named(heads, name);
    const bool causal_map = head.layer == "decoder.0";
    HeadEditor nothing;
    const MapView own = used_map(loaded, nothing, head);
    for (const char* by : {"uniform", "identity", "band:w=1"}) {
      CAPTURE(by);
      HeadAblation ablation(HeadReplacement::parse(by));
      ablation.replace({head});
      const MapView map = used_map(loaded, ablation, head);
      for (int64_t query = 0; query < map.queries; ++query) {
        for (int64_t key = 0; key < map.keys; ++key) {
          CHECK(map.at(0, query, key) == own.at(0, query, key));
          const bool visible = !causal_map || key <= query;
          double expected = 0, inside = 0;
          for (int64_t near = std::max<int64_t>(query - 1, 0); near <= std::min(query + 1, map.keys - 1);
               ++near)
            inside += own.at(1, query, near);
          if (by == std::string("uniform"))
            expected = visible ? 1.0 / static_cast<double>(causal_map ? query + 1 : map.keys) : 0;
          else if (by == std::string("identity"))
            expected = key == std::min(query, map.keys - 1) ? 1 : 0;
          else if (std::abs(key - query) <= 1)
            expected = inside > 0 ? own.at(1, query, key) / inside : 1;
          if (by == std::string("band:w=1") && inside == 0) continue;  // queries far beyond the last key
          CHECK(map.at(1, query, key) == Approx(expected).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("head ablation: step by step with a cache, edited heads give what they give for whole sentences") {
  for (const char* attention : {"softmax", "linear"}) {
    Loaded loaded(
        "translate",
        {{"attention.encoder", attention}, {"attention.decoder", attention}, {"attention.cross", "softmax"}});
    const NoGrad no_grad;
    auto& model = dynamic_cast<EncoderDecoder&>(*loaded.model);
    const auto heads = heads_of_model(loaded.task(), *loaded.model);
    for (const char* by : {"zero", "uniform", "identity"}) {
      CAPTURE(attention, by);
      HeadAblation ablation(HeadReplacement::parse(by));
      ablation.replace(named_heads(heads, by == std::string("zero") ? "decoder.0.1,cross.0.0" : "cross.0.0"));
      const std::vector<int64_t> first{0};
      const Batch batch = example_provider(loaded.task()).test_batch(first, 0).batch;
      const Tensor encoded = model.encode(batch.tensors[0], batch.tensors[1], {.editor = &ablation});
      const Tensor whole = model.logits(
          model.decode(batch.tensors[2], encoded, batch.tensors[1], {.editor = &ablation}));  // [1, T, V]
      Decoding state = model.start(encoded, batch.tensors[1]);
      state.editor = &ablation;
      for (int64_t t = 0; t < whole.extent(1); ++t) {
        const Tensor step = model.next(view::slice(batch.tensors[2], 1, t, t + 1), state);
        const std::vector<double> a = contiguous(slice(whole, 1, t, t + 1)).to_doubles(),
                                  b = step.to_doubles();
        for (size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).margin(1e-4));
      }
    }
  }
}

TEST_CASE("head ablation: the mean of a head in place of it keeps the mean of what the projection reads") {
  Loaded loaded("recall", {{"data.test_size", "20"}});
  const auto heads = heads_of_model(loaded.task(), *loaded.model);
  const MeanOutputs means = mean_outputs(loaded.task(), *loaded.model, 0, 0);
  REQUIRE(means.at(heads[0].module).size() == 16);
  HeadAblation ablation(HeadReplacement::parse("mean"), &means);
  ablation.replace({heads[1]});
  const NoGrad no_grad;
  Tensor y(Shape{1, 2, 3, 8});
  Rng rng(1);
  fill_normal(y, 0, 1, rng);
  const std::vector<double> before = y.to_doubles(),
                            after = ablation.edit_heads(*heads[0].module, y, {}).to_doubles();
  for (size_t i = 0; i < 24; ++i) CHECK(after[i] == before[i]);
  for (size_t i = 24; i < 48; ++i) CHECK(after[i] == Approx(means.at(heads[0].module)[8 + i % 8]));
}

TEST_CASE(
    "head ablation: the report has every head, layer and step, with errors, BLEU where it is asked for") {
  Loaded loaded("translate");
  double share = 0;
  std::optional<WorkScope> scope;
  scope.emplace([&](const WorkDone& now) {
    CHECK(now.share > share);
    share = now.share;
  });
  const AblationReport report =
      ablate_heads(loaded.task(), *loaded.model, {.examples = 16, .outputs = 4}, {});
  CHECK(share == Approx(1));
  scope.reset();
  CHECK(report.examples == 16);
  REQUIRE(report.heads.size() == 6);
  CHECK(report.layers.size() == 3);
  REQUIRE(report.curve.size() == 7);
  CHECK(report.curve.front().effect.loss.value == 0);
  CHECK(report.curve.back().left == 0);
  for (const AblationEffect& effect : report.heads) {
    CHECK(effect.loss.error > 0);
    CHECK(effect.bleu);
  }
  const Json json = ablation_json(report);
  CHECK(json.at("curve").list().size() == 7);
  CHECK(json.at("whole").at("loss").real() == Approx(std::log(1000)).epsilon(0.5));
  CHECK(ablation_text(report).find("cross.0.1") != std::string::npos);
  CHECK(ablation_svg(report).find("cross.0.1") != std::string::npos);
  CHECK_THAT(ablation_text(report), containing("head removed  heads left") && containing("change of BLEU\n"));
  CHECK_THAT(ablation_page(report, "title", "subtitle"),
             containing("<th scope=\"col\">head removed</th><th scope=\"col\">heads left</th>") &&
                 containing("change of BLEU"));
  // Heads and layers have an axis each: a change is drawn beside those of its own size.
  AblationReport unequal = report;
  for (AblationEffect& effect : unequal.heads) effect.loss = {.value = 0.01, .error = 0.001};
  for (AblationEffect& effect : unequal.layers) effect.loss = {.value = 5, .error = 0.1};
  CHECK_THAT(ablation_svg(unequal), containing(">0.01</text>") && containing(">4</text>"));
  CHECK_THAT(ablation_svg(unequal), containing("prefers-color-scheme:dark"));
  const AblationReport chosen =
      ablate_heads(loaded.task(), *loaded.model, {.examples = 16, .heads = "cross.0"}, {});
  REQUIRE(chosen.heads.size() == 2);
  REQUIRE(chosen.layers.size() == 1);
  CHECK(chosen.curve.empty());
  CHECK_THAT(ablation_page(chosen, "title", "subtitle"), !containing("BLEU") && !containing("Pruning"));
  CHECK(chosen.layers[0].loss.value == Approx(report.layers[2].loss.value).epsilon(1e-6));
}

TEST_CASE(
    "head ablation: the standard error is that of the mean of differences when all examples weigh the same") {
  Loaded loaded("recall", {{"data.test_size", "30"}});
  const auto heads = heads_of_model(loaded.task(), *loaded.model);
  const AblationReport report = ablate_heads(loaded.task(), *loaded.model, {.heads = heads[0].name}, {});
  HeadAblation ablation({});
  ablation.replace({heads[0]});
  std::vector<double> differences;
  for (const auto& numbers : batches_of_equal_lengths(loaded.task(), 0, 0, 64)) {
    const ExampleBatch batch = example_provider(loaded.task()).test_batch(numbers, 0);
    const auto before = example_provider(loaded.task()).example_scores(*loaded.model, batch, {}),
               after = example_provider(loaded.task())
                           .example_scores(*loaded.model, batch, {.editor = &ablation});
    for (size_t i = 0; i < before.size(); ++i) differences.push_back(after[i].loss - before[i].loss);
  }
  double mean = 0, squares = 0;
  for (const double one : differences) mean += one / 30;
  for (const double one : differences) squares += (one - mean) * (one - mean);
  CHECK(report.heads[0].loss.value == Approx(mean));
  CHECK(report.heads[0].loss.error == Approx(std::sqrt(squares / 29 / 30)));
}

TEST_CASE("head gates: a high penalty closes gates, a tiny one leaves them open") {
  for (const double penalty : {5.0, 1e-6}) {
    Loaded loaded("recall", {{"data.test_size", "20"}, {"train.batch_size", "8"}});
    const GateReport report =
        train_head_gates(loaded.task(), *loaded.model,
                         {.steps = 60, .penalty = penalty, .learning_rate = 0.2}, {.examples = 20}, {});
    CAPTURE(penalty);
    REQUIRE(report.gates.size() == heads_of_model(loaded.task(), *loaded.model).size());
    for (const HeadGate& gate : report.gates) {
      CHECK((gate.open > 0 && gate.open < 1));
      if (penalty > 1)
        CHECK(gate.value == 0);
      else
        CHECK(gate.value > 0.5);
    }
    CHECK(report.kept == (penalty > 1 ? 0 : static_cast<int64_t>(report.gates.size())));
    CHECK(gates_text(report).find("heads stay") != std::string::npos);
  }
}
