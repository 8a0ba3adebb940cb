// Packed recall: which value belongs to the queried key? Attentions that can find a position learn it fast.
#include <algorithm>
#include <numeric>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/variant.h"
#include "heed/data/batching/shuffle.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/tasks/classification/classification_task.h"
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
class Recall final : public ClassificationTask {
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
    if (config.model.max_length < length())
      fail("model.max_length = ", config.model.max_length, " is less than the ", length(),
           " tokens of a sequence.");
    constexpr int64_t max_batch_size = 100000;  // data are endless, so nothing else bounds a batch
    check_batch_size(config, "sequences", max_batch_size);
    check_encoder_attention(config, options_.causal, "data.causal = true");
  }

  void load(const Config& config, const std::vector<NamedBytes>&,
            const std::function<void(const std::string&)>& log) override {
    check_settings(config);
    set_options(config.train);
    log(text("data        ", options_.items, " of ", options_.keys, " keys with one of ", options_.values,
             " values each, made as they are needed"));
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

  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    return batches;
  }
  Batch batch(int64_t position) const override {
    std::vector<int64_t> numbers(static_cast<size_t>(batch_size_));
    std::iota(numbers.begin(), numbers.end(), (epoch_ * batches + position) * batch_size_);
    return examples(Split::training, numbers);
  }
  double weight(int64_t) const override { return static_cast<double>(batch_size_); }
  std::vector<std::string> tensor_names() const override { return {"ids", "targets"}; }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    Evaluation out;
    out.scores = score(model, Split::test, options_.test_size).scores();
    out.notes = {text(options_.test_size, " test sequences; chance: ",
                      picture::fixed(1.0 / static_cast<double>(options_.values), 4))};
    return out;
  }

 private:
  static constexpr int64_t batches = 100;  // number of batches in an epoch

  /// Tokens of a sequence: the items and the query.
  int64_t length() const { return options_.items + 1; }

  const char* example_name() const override { return "test sequence"; }
  int64_t num_examples(Split split) const override {
    return split == Split::validation ? options_.validation : options_.test_size;
  }

  ExampleTokens tokens_of(int64_t number) const override {
    const Batch batch = examples(Split::test, std::span(&number, 1));
    const auto answer = static_cast<int64_t>(batch.tensors[1].to_doubles()[0]);
    ExampleTokens out{.number = number,
                      .caption = text("test sequence ", number, ", the answer is ", answer)};
    for (const double token : batch.tensors[0].to_doubles()) {
      const int64_t pair = static_cast<int64_t>(token) - 1 - options_.keys;  // below 0: the query
      out.input.push_back(pair < 0 ? text("key ", pair + options_.keys, "?")
                                   : text("key ", pair / options_.values, ": ", pair % options_.values));
    }
    return out;
  }

  /// [0] tokens i32 [B, items + 1], [1] the values asked for, i32 [B]. Each sequence is a pure function of
  /// (seed, split, number).
  Batch examples(Split split, std::span<const int64_t> numbers) const override {
    std::vector<int32_t> ids, labels;
    for (const int64_t number : numbers) {
      const uint64_t stream = static_cast<uint64_t>(split) + 8 * static_cast<uint64_t>(number);
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
    const auto count = static_cast<int64_t>(numbers.size());
    Batch batch;
    batch.tensors = {Tensor::of<int32_t>(ids, Shape{count, length()}),
                     Tensor::of<int32_t>(labels, Shape{count})};
    batch.weight = static_cast<double>(count);
    batch.tokens = count * length();
    return batch;
  }

  RecallOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace

TaskEntry task::recall() {
  return task_entry<Recall>(
      "recall", "packed recall: which value went with this key? a test of attention, made on the fly");
}

}  // namespace heed
