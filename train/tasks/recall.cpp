// Packed recall: which value went with this key? What every attention that can find a place learns at once.
#include <algorithm>
#include <charconv>

#include "attention/variant.h"
#include "data/shuffle.h"
#include "train/task_list.h"

namespace heed {
namespace {

struct Options {
  int64_t items = 8, keys = 12, values = 12;
  bool causal = false;
  int64_t head = 128;
  int64_t validation = 500, held_out = 2000;
  void fields(Fields& f) {
    f("items", items, "keys with their values, in front of the question");
    f("keys", keys, "different keys; no sequence has one twice");
    f("values", values, "different values, the classes");
    f("causal", causal, "no token looks at later ones: for attentions that only look back");
    f("head", head, "hidden width of the classifying head; 0: none");
    f("validation", validation, "sequences to choose the best checkpoint");
    f("held_out", held_out, "test sequences");
  }
};

/// Numbers made on the fly: token 1 + key asks, token 1 + keys + values key + value is a pair, the question
/// comes last.
class Recall final : public Task {
 public:
  void fields(Fields& f) override { options_.fields(f); }

  void load(const Config& config, const std::vector<NamedBytes>&,
            const std::function<void(const std::string&)>& say) override {
    for (const auto& [name, value, least] : {std::tuple{"items", options_.items, int64_t{1}},
                                             {"keys", options_.keys, int64_t{1}},
                                             {"values", options_.values, int64_t{2}},
                                             {"validation", options_.validation, int64_t{1}},
                                             {"held_out", options_.held_out, int64_t{1}}}) {
      if (value < least || value > 1000000)
        fail("data.", name, " = ", value, ". It must be ", least, " to 1000000.");
    }
    if (options_.items > options_.keys)
      fail("data.items = ", options_.items, ", but there are ", options_.keys,
           " keys, and no sequence has one twice. Use fewer items or more keys.");
    if (config.model.max_length < options_.items + 1)
      fail("model.max_length = ", config.model.max_length, " is less than the ", options_.items + 1,
           " tokens of a sequence.");
    if (config.train.batch < 1 || config.train.batch > most_at_once)
      fail("train.batch = ", config.train.batch, ". The task recall counts sequences: give 1 to ",
           most_at_once, ".");
    batch_ = config.train.batch;
    seed_ = static_cast<uint64_t>(config.train.seed);
    smoothing_ = config.train.smoothing;
    say(text("data        ", options_.items, " of ", options_.keys, " keys with one of ", options_.values,
             " values each, made as they are needed"));
  }

  void load_sealed(const Config& config, const std::vector<NamedBytes>& sealed) override {
    load(config, sealed, [](const std::string&) {});
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

  std::vector<NamedBytes> sealed() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> facts() const override { return {}; }

  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    return batches;
  }
  Batch batch(int64_t position) const override {
    const int64_t first = (epoch_ * batches + position) * batch_;
    return made(training, first, first + batch_);
  }
  double weight(int64_t) const override { return static_cast<double>(batch_); }
  std::vector<std::string> parts() const override { return {"ids", "targets"}; }

  Tensor loss(Module& model, const Batch& batch, const Pass& pass) const override {
    const Tensor logits = dynamic_cast<Classifier&>(model)(batch.tensors[0], {}, pass);
    settle_terms(pass.terms, logits, batch.tensors[1]);
    return cross_entropy(logits, batch.tensors[1], pass.noise != nullptr ? smoothing_ : 0);
  }

  Scores validate(Module& model) const override { return classify(model, validation, options_.validation); }
  std::vector<ValidationPart> rehearsal(Module& model) const override {
    const int64_t some = std::min(options_.validation, scored_at_once);
    return {{.compute = [this, &model, some] { classify(model, validation, some); },
             .some = static_cast<double>(some),
             .all = static_cast<double>(options_.validation)}};
  }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    Evaluation out;
    out.scores = classify(model, testing, options_.held_out);
    out.notes = {
        text(options_.held_out, " test sequences; chance: ", 1.0 / static_cast<double>(options_.values))};
    return out;
  }

  std::vector<MapView> maps(Module& module, const std::string& given, std::string& caption) const override {
    const NoTape no_tape;
    int64_t index = 0;
    if (!given.empty()) {
      const auto [at, fault] = std::from_chars(given.data(), given.data() + given.size(), index);
      if (fault != std::errc() || at != given.data() + given.size() || index < 0 ||
          index >= options_.held_out)
        fail("inspect: '", given, "' is no test sequence. Give its number, 0 to ", options_.held_out - 1,
             ".");
    }
    const Batch batch = made(testing, index, index + 1);
    Probe probe;
    dynamic_cast<Classifier&>(module)(batch.tensors[0], {}, {.probe = &probe});
    std::vector<std::string> labels;
    for (const double token : batch.tensors[0].to_doubles()) {
      const int64_t id = static_cast<int64_t>(token) - 1 - options_.keys;
      labels.push_back(id < 0 ? text("key ", id + options_.keys, "?")
                              : text("key ", id / options_.values, ": ", id % options_.values));
    }
    caption = text("test sequence ", index, ", the answer is ",
                   static_cast<int64_t>(batch.tensors[1].to_doubles()[0]));
    std::vector<MapView> views;
    for (const Probe::Map& map : probe.maps)
      views.push_back(
          map_view(module, map, "encoder self", static_cast<int64_t>(views.size()), labels, labels));
    return views;
  }

 private:
  /// Sequences first <= number < end of a split, each a function of (seed, split, number).
  Batch made(uint64_t split, int64_t first, int64_t end) const {
    const int64_t length = options_.items + 1;
    std::vector<int32_t> ids, labels;
    for (int64_t number = first; number < end; ++number) {
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
    batch.tensors = {Tensor::of<int32_t>(ids, Shape{end - first, length}),
                     Tensor::of<int32_t>(labels, Shape{end - first})};
    batch.weight = static_cast<double>(end - first);
    batch.tokens = (end - first) * length;
    return batch;
  }

  Scores classify(Module& module, uint64_t split, int64_t count) const {
    const NoTape no_tape;
    auto& model = dynamic_cast<Classifier&>(module);
    double loss = 0;
    int64_t right = 0;
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
    }
    return {.list = {{"accuracy", static_cast<double>(right) / static_cast<double>(count)},
                     {"loss", loss / static_cast<double>(count)}},
            .lower_is_better = false};
  }

  static constexpr int64_t batches = 100, scored_at_once = 500;
  static constexpr int64_t most_at_once = 100000;  // there is no end to the data that would end a batch
  static constexpr uint64_t training = 0, validation = 1, testing = 2;
  Options options_;
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
