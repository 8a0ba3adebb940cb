// Packed recall: which value belongs to the queried key? Attentions that can find a position learn it fast.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "heed/attention/inspect/head_calls.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/variant.h"
#include "heed/core/counted_work.h"
#include "heed/data/batching/shuffle.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/tasks/causal_encoder.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

struct RecallOptions {
  int64_t items = 8, keys = 12, values = 12;
  bool causal = false;
  int64_t head = 128;
  int64_t validation = 500, test_size = 2000;
  void fields(Fields& f) {
    f("items", items, {1, 1'000'000}, "keys with their values, in front of the question");
    f("keys", keys, {1, 1'000'000}, "different keys; no sequence has one twice");
    f("values", values, {2, 1'000'000}, "different values, the classes");
    f("causal", causal, "no token looks at later ones: for attentions that only look back");
    f("validation", validation, {1, 1'000'000}, "sequences to choose the best checkpoint");
    f("test_size", test_size, {1, 1'000'000}, "test sequences");
  }
  void model_fields(Fields& f) {
    f("head", head, {0, max_width}, "hidden width of the classifying head; 0: none");
  }
};

/// Sequences generated on the fly. Token 1 + keys + values * key + value is a pair; the last token, 1 + key,
/// is the query.
class Recall final : public Task {
 public:
  void fields(Fields& f) override { options_.fields(f); }
  std::vector<std::pair<std::string, int64_t>> small_data() const override {
    return {{"validation", std::min<int64_t>(options_.validation, 50)},
            {"test_size", std::min<int64_t>(options_.test_size, 50)}};
  }
  void model_fields(Fields& f) override { options_.model_fields(f); }

  void check_settings(const Config& config) const override {
    if (options_.items > options_.keys)
      fail("data.items = ", options_.items, ", but there are ", options_.keys,
           " keys, and no sequence has one twice. Use fewer items or more keys.");
    if (config.model.max_length < options_.items + 1)
      fail("model.max_length = ", config.model.max_length, " is less than the ", options_.items + 1,
           " tokens of a sequence.");
    if (config.train.batch_size < 1 || config.train.batch_size > max_batch_size)
      fail("train.batch_size = ", config.train.batch_size, ". The task recall counts sequences: give 1 to ",
           max_batch_size, ".");
    check_encoder_attention(config, options_.causal, "data.causal = true");
  }

  void load(const Config& config, const std::vector<NamedBytes>&,
            const std::function<void(const std::string&)>& log) override {
    check_settings(config);
    batch_ = config.train.batch_size;
    seed_ = static_cast<uint64_t>(config.train.seed);
    smoothing_ = config.train.label_smoothing;
    log(text("data        ", options_.items, " of ", options_.keys, " keys with one of ", options_.values,
             " values each, made as they are needed"));
  }

  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) override {
    load(config, artifacts, [](const std::string&) {});
  }

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return std::make_unique<Classifier>(
        config.model,
        Classifier::Options{.vocabulary = 1 + options_.keys + options_.keys * options_.values,
                            .classes = options_.values,
                            .pool = Pool::last,
                            .causal = options_.causal,
                            .head_hidden = options_.head},
        attention_factory(config.attention.encoder), rng);
  }

  std::vector<NamedBytes> artifacts() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> metadata() const override { return {}; }

  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    return batches;
  }
  Batch batch(int64_t position) const override {
    const int64_t first = (epoch_ * batches + position) * batch_;
    return made(training, first, first + batch_);
  }
  double weight(int64_t) const override { return static_cast<double>(batch_); }
  std::vector<std::string> tensor_names() const override { return {"ids", "targets"}; }

  Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const override {
    const Tensor logits = dynamic_cast<Classifier&>(model)(batch.tensors[0], {}, context);
    resolve_auxiliary_losses(context.losses, logits, batch.tensors[1]);
    return cross_entropy(logits, batch.tensors[1], context.training() ? smoothing_ : 0);
  }

  Scores validate(Module& model) const override { return classify(model, validation, options_.validation); }
  std::vector<ValidationPart> validation_cost(Module& model) const override {
    const int64_t some = std::min(options_.validation, scored_at_once);
    return {{.compute = [this, &model, some] { classify(model, validation, some); },
             .some = static_cast<double>(some),
             .all = static_cast<double>(options_.validation),
             .test = static_cast<double>(options_.test_size)}};
  }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    Evaluation out;
    out.scores = classify(model, testing, options_.test_size);
    out.notes = {text(options_.test_size, " test sequences; chance: ",
                      picture::fixed(1.0 / static_cast<double>(options_.values), 4))};
    return out;
  }

  std::vector<MapView> maps(Module& module, const std::string& given, std::string& caption) const override {
    return maps_with(module, given, {}, caption);
  }

  std::vector<MapView> maps_with(Module& module, const std::string& given, const MapParts& parts,
                                 std::string& caption) const override {
    std::optional<NoGrad> no_grad;
    refuse_gradients(no_grad, parts);
    int64_t index = 0;
    if (!given.empty()) {
      const auto [at, fault] = std::from_chars(given.data(), given.data() + given.size(), index);
      if (fault != std::errc() || at != given.data() + given.size() || index < 0 ||
          index >= options_.test_size)
        fail("'", given, "' is no test sequence. Give its number, 0 to ", options_.test_size - 1, ".");
    }
    const ExampleBatch one = test_batch(std::vector<int64_t>{index}, 0);
    MapRecorder recorder = recorder_for(parts);
    const Tensor logits =
        dynamic_cast<Classifier&>(module)(one.batch.tensors[0], {}, {.recorder = &recorder});
    explain_choice(logits, parts);
    const std::vector<std::string>& labels = one.rows[0].input;
    caption = text(one.rows[0].caption, "; the model says ", likeliest(logits)[0]);
    std::vector<MapView> views;
    for (size_t i = 0; i < recorder.maps.size(); ++i)
      views.push_back(map_view(module, recorder, i, "encoder self", static_cast<int64_t>(i), labels, labels));
    return views;
  }

  int64_t test_examples() const override { return options_.test_size; }
  std::vector<int64_t> test_lengths(int64_t, int64_t) const override { return {options_.items + 1}; }
  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t) const override {
    ExampleBatch out{.batch = made(testing, numbers), .rows = {}};
    const std::vector<double> ids = out.batch.tensors[0].to_doubles(),
                              answers = out.batch.tensors[1].to_doubles();
    for (size_t row = 0; row < numbers.size(); ++row) {
      ExampleTokens tokens{.number = numbers[row],
                           .caption = text("test sequence ", numbers[row], ", the answer is ",
                                           static_cast<int64_t>(answers[row]))};
      const auto begin = ids.begin() + static_cast<int64_t>(row) * (options_.items + 1);
      for (auto at = begin; at != begin + options_.items + 1; ++at) {
        const int64_t id = static_cast<int64_t>(*at) - 1 - options_.keys;
        tokens.input.push_back(id < 0 ? text("key ", id + options_.keys, "?")
                                      : text("key ", id / options_.values, ": ", id % options_.values));
      }
      out.rows.push_back(std::move(tokens));
    }
    return out;
  }
  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const override {
    const NoGrad no_grad;
    return scores_of_examples(dynamic_cast<Classifier&>(model)(examples.batch.tensors[0], {}, context),
                              examples.batch.tensors[1], std::vector<int64_t>(examples.rows.size(), 1));
  }

 private:
  /// Sequences first <= number < end of a split.
  Batch made(uint64_t split, int64_t first, int64_t end) const {
    std::vector<int64_t> numbers(static_cast<size_t>(end - first));
    std::iota(numbers.begin(), numbers.end(), first);
    return made(split, numbers);
  }

  /// Sequences of a split, each a pure function of (seed, split, number).
  Batch made(uint64_t split, std::span<const int64_t> numbers) const {
    const int64_t length = options_.items + 1, count = static_cast<int64_t>(numbers.size());
    std::vector<int32_t> ids, labels;
    for (const int64_t number : numbers) {
      const uint64_t stream = split + 8 * static_cast<uint64_t>(number);
      const std::vector<int64_t> keys = shuffled(options_.keys, seed_, stream);
      const int64_t asked = counter_below(seed_, stream + 4, 0, options_.items);
      int64_t answer = 0;
      for (int64_t i = 0; i < options_.items; ++i) {
        const int64_t value = counter_below(seed_, stream + 4, static_cast<uint64_t>(1 + i), options_.values);
        if (i == asked) answer = value;
        ids.push_back(
            static_cast<int32_t>(1 + options_.keys + options_.values * keys[static_cast<size_t>(i)] + value));
      }
      ids.push_back(static_cast<int32_t>(1 + keys[static_cast<size_t>(asked)]));
      labels.push_back(static_cast<int32_t>(answer));
    }
    Batch batch;
    batch.tensors = {Tensor::of<int32_t>(ids, Shape{count, length}),
                     Tensor::of<int32_t>(labels, Shape{count})};
    batch.weight = static_cast<double>(count);
    batch.tokens = count * length;
    return batch;
  }

  Scores classify(Module& module, uint64_t split, int64_t count) const {
    const NoGrad no_grad;
    auto& model = dynamic_cast<Classifier&>(module);
    double loss = 0;
    int64_t right = 0;
    CountedWork work(static_cast<double>(count));
    for (int64_t first = 0; first < count; first += scored_at_once) {
      const Batch batch = made(split, first, std::min(first + scored_at_once, count));
      const Tensor logits = model(batch.tensors[0], {}, {});
      loss += cross_entropy(logits, batch.tensors[1]).item() * batch.weight;
      const std::vector<float> scores = logits.to_host();
      const std::vector<double> labels = batch.tensors[1].to_doubles();
      for (size_t i = 0; i < labels.size(); ++i) {
        const float* row = scores.data() + i * static_cast<size_t>(options_.values);
        right +=
            std::max_element(row, row + options_.values) - row == static_cast<int64_t>(labels[i]) ? 1 : 0;
      }
      work.add(batch.weight);
    }
    return {.list = {{"accuracy", static_cast<double>(right) / static_cast<double>(count)},
                     {"loss", loss / static_cast<double>(count)}},
            .lower_is_better = false};
  }

  static constexpr int64_t batches = 100, scored_at_once = 500;
  static constexpr int64_t max_batch_size = 100000;  // data are endless, so nothing else bounds a batch
  static constexpr uint64_t training = 0, validation = 1, testing = 2;
  RecallOptions options_;
  int64_t batch_ = 1, epoch_ = 0;
  uint64_t seed_ = 1;
  double smoothing_ = 0;
};

}  // namespace

TaskEntry task::recall() {
  return {"recall", "packed recall: which value went with this key? a test of attention, made on the fly",
          []() -> std::unique_ptr<Task> { return std::make_unique<Recall>(); }};
}

}  // namespace heed
