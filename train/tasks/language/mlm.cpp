// Masked language modelling: text to an encoder that guesses hidden tokens from both sides, as BERT does.
#include <algorithm>
#include <numeric>

#include "heed/attention/inspect/head_calls.h"
#include "heed/attention/variant.h"
#include "heed/core/counted_work.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/streamed_text.h"
#include "heed/nn/masked_language_model.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/classification/classification_task.h"
#include "heed/train/tasks/language/lm_data.h"
#include "heed/train/tasks/language/masked_tokens.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

class MaskedLanguageTask final : public Task, public MapProvider, public ExampleProvider {
 public:
  MaskedLanguageTask() {
    data_.options.eval_batches = 0;
    data_.leaves_room_for_ends = true;
  }

  void fields(Fields& f) override {
    data_.options.text_fields(f);
    f("hidden_share", hidden_share_,
      "share of tokens to guess: 80 % of them are hidden, 10 % replaced by others and 10 % left");
  }
  void model_fields(Fields& f) override {
    f("token_types", token_types_, {1, max_width},
      "rows of the table of token types, of which all tokens take the first");
  }
  std::vector<std::pair<std::string, int64_t>> small_data() const override {
    return {{"num_examples", std::min<int64_t>(data_.options.num_examples, 20000)}};
  }

  void check_settings(const Config& config) const override {
    check_batch_size(config, "windows");
    check_encoder_attention(config, false, "");
    if (!(hidden_share_ > 0 && hidden_share_ < 1))
      fail("data.hidden_share = ", hidden_share_, ". It must be above 0 and below 1, such as 0.15.");
  }

  void load(const Config& config, const std::vector<NamedBytes>& artifacts,
            const std::function<void(const std::string&)>& log) override {
    data_.load(config, artifacts, log);
    max_length_ = config.model.max_length;
    batch_size_ = config.train.batch_size;
    seed_ = static_cast<uint64_t>(config.train.seed);
    smoothing_ = config.train.label_smoothing;
  }

  void test_on(const std::string& path) override { data_.test_on(path); }

  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) override {
    max_length_ = config.model.max_length;
    data_.load_tokenizer(artifacts);
  }

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    const MaskedLanguageModel::Options options{.vocabulary = masked_vocabulary(data_.tokenizer()),
                                               .token_types = token_types_};
    return std::make_unique<MaskedLanguageModel>(config.model, options,
                                                 attention_factory(config.attention.encoder), rng);
  }

  std::vector<NamedBytes> artifacts() const override { return data_.artifacts(); }
  std::vector<std::pair<std::string, std::string>> metadata() const override { return data_.metadata(); }

  // Windows start at random, so an epoch has as many batches as would cover the text once.
  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    return data_.train->batches();
  }

  Batch batch(int64_t position) const override {
    const WindowBatch whole = windows_at(position);
    return tensors(whole.input, names_from(position * batch_size_, whole.input.rows),
                   static_cast<uint64_t>(epoch_));
  }

  Batch shard(int64_t position, const BatchShard& shard) const override {
    const WindowBatch whole = windows_at(position);
    const int64_t all = whole.input.rows;
    const BatchRows rows = shard.of(all);
    Batch out;
    if (rows.count > 0)
      out =
          tensors(whole.some_rows(rows.first, rows.count).input,
                  names_from(position * batch_size_ + rows.first, rows.count), static_cast<uint64_t>(epoch_));
    out.whole_weight = static_cast<double>(all * num_hidden(whole.input.columns, hidden_share_));
    out.rows = rows;
    return out;
  }

  std::vector<std::string> tensor_names() const override { return {"input", "targets", "asked"}; }

  Tensor loss(Module& module, const Batch& batch, const ForwardContext& context) const override {
    const auto& model = dynamic_cast<MaskedLanguageModel&>(module);
    const Tensor rows = asked_hidden(model, batch, context), &targets = batch.tensors[1];
    const double smoothing = context.training() ? smoothing_ : 0;
    if (context.losses == nullptr || context.losses->waiting.empty())
      return model.token_loss(rows, targets, smoothing);
    const Tensor logits = model.logits(rows);
    resolve_auxiliary_losses(context.losses, logits.detach(), targets, asked_counts(batch));
    return cross_entropy(logits, targets, smoothing);
  }

  Scores validate(Module& model) const override { return scores_of(tally(model, *data_.validation.windows)); }

  std::vector<ValidationPart> validation_cost(Module& model) const override {
    const Rows first = data_.validation.windows->in_order(0).input;
    return {{.compute =
                 [this, &model, first] {
                   const NoGrad no_grad;
                   logits_of(model, scored(first, 0), {}).to_host();
                 },
             .some = static_cast<double>(first.ids.size()),
             .all = static_cast<double>(data_.validation.windows->size() - 1),
             .test = static_cast<double>(data_.test.windows->size() - 1)}};
  }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    const TextWindows& windows = *data_.test.windows;
    const ClassificationTally all = tally(model, windows);
    Evaluation out;
    out.scores = scores_of(all);
    out.notes = {text(static_cast<int64_t>(all.weight()), " hidden ones of ", windows.size() - 1,
                      " tokens of ",
                      data_.tested_text(max_length_ - data_.tokenizer().special().around_masked()))};
    return out;
  }

  std::vector<MapView> maps(Module& module, const std::string& given, std::string& caption) const override {
    return maps_with(module, given, {}, caption);
  }

  std::vector<MapView> maps_with(Module& module, const std::string& given, const MapParts& parts,
                                 std::string& caption) const override {
    std::optional<NoGrad> no_grad;
    turn_gradients_off(no_grad, parts);
    const auto& model = dynamic_cast<MaskedLanguageModel&>(module);
    const std::vector<int32_t> ids = ids_of(given, parts.max_tokens);
    caption = text_of(ids);
    MapRecorder recorder = recorder_for(parts);
    const Tensor input = Tensor::of<int32_t>(ids, Shape{1, static_cast<int64_t>(ids.size())});
    const Tensor logits = model.logits(model.hidden(input, {}, {.recorder = &recorder}));
    explain_choice(reshape(logits, Shape{-1, logits.extent(-1)}), parts);
    return self_attention_views(module, recorder, "encoder self", pieces(ids));
  }

  int64_t test_examples() const override { return data_.test.windows->num_windows(); }

  std::vector<int64_t> test_lengths(int64_t, int64_t max_tokens) const override {
    return {max_tokens > 0 ? std::min(max_tokens, max_length_) : max_length_};
  }

  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const override {
    const int64_t around = data_.tokenizer().special().around_masked(),
                  columns = max_tokens > 0 ? std::max<int64_t>(max_tokens - around, 1) : 0;
    const WindowBatch made = data_.test.windows->windows(numbers, columns);
    ExampleBatch out{.batch = tensors(made.input, {numbers.begin(), numbers.end()}, drawn_for_scores),
                     .rows = {}};
    const std::vector<double> ids = out.batch.tensors[0].to_doubles();
    const int64_t length = out.batch.tensors[0].extent(1);
    for (size_t row = 0; row < numbers.size(); ++row) {
      const auto begin = ids.begin() + static_cast<int64_t>(row) * length;
      const std::vector<int32_t> tokens(begin, begin + length);
      out.rows.push_back({.number = numbers[row], .caption = text_of(tokens), .input = pieces(tokens)});
    }
    return out;
  }

  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const override {
    const NoGrad no_grad;
    return scores_of_examples(logits_of(model, examples.batch, context), examples.batch.tensors[1],
                              asked_counts(examples.batch));
  }

 private:
  static Scores scores_of(const ClassificationTally& tally) {
    return {.list = {{"loss", tally.loss()}, {"accuracy", tally.accuracy()}}, .lower_is_better = true};
  }
  static std::vector<int64_t> names_from(int64_t first, int64_t count) {
    std::vector<int64_t> names(static_cast<size_t>(count));
    std::iota(names.begin(), names.end(), first);
    return names;
  }
  static std::vector<int64_t> asked_counts(const Batch& batch) {
    return asked_of_each(batch.tensors[2], batch[0].extent(0), batch[0].extent(1));
  }

  std::string text_of(std::vector<int32_t> ids) const {
    const Tokenizer& tokenizer = data_.tokenizer();
    std::string out;
    for (auto begin = ids.begin();;) {  // a tokenizer without a mask cannot decode it
      const auto end =
          tokenizer.special().mask >= 0 ? ids.end() : std::find(begin, ids.end(), mask_of(tokenizer));
      out += as_utf8(decode_lines(tokenizer, std::span(begin, end)));
      if (end == ids.end()) return out;
      out += mask_name;
      begin = end + 1;
    }
  }
  std::vector<std::string> pieces(const std::vector<int32_t>& ids) const {
    const Tokenizer& tokenizer = data_.tokenizer();
    std::vector<std::string> out;
    for (const int32_t id : ids) out.push_back(id < tokenizer.size() ? tokenizer.piece(id) : mask_name);
    return out;
  }

  /// The tokens of a text, or of the opening where it is empty, with start and end; cut where `max_tokens` is
  /// above 0.
  std::vector<int32_t> ids_of(const std::string& given, int64_t max_tokens) const {
    const Tokenizer& tokenizer = data_.tokenizer();
    const std::vector<int32_t> inner = given.empty() ? data_.opening : encode_lines(tokenizer, given);
    const int64_t length = static_cast<int64_t>(inner.size()) + tokenizer.special().around_masked();
    if (inner.empty()) fail("the text has no token. Give one of at least one.");
    if (length > max_length_ && max_tokens == 0)
      fail("the text has ", length, " tokens, and the model reads ", max_length_, " at most. Shorten it.");
    return between_ends(tokenizer, inner, max_tokens > 0 ? std::min(max_tokens, max_length_) : max_length_);
  }

  WindowBatch windows_at(int64_t position) const {
    return data_.train->random(epoch_ * data_.train->batches() + position);
  }

  /// Ids [B, T], the hidden tokens [n], and their places [n], as b T + t.
  Batch tensors(const Rows& windows, std::vector<int64_t> names, uint64_t drawn) const {
    const MaskedRows made = masked_rows(data_.tokenizer(), windows, std::move(names),
                                        {.share = hidden_share_, .seed = seed_, .drawn = drawn});
    const auto list = [](const std::vector<int32_t>& numbers) {
      return Tensor::of<int32_t>(numbers, Shape{static_cast<int64_t>(numbers.size())});
    };
    Batch batch;
    batch.tensors = {Tensor::of<int32_t>(made.ids, Shape{windows.rows, made.columns}),
                     list(made.asked.tokens), list(made.asked.rows)};
    batch.tokens = windows.rows * made.columns;
    batch.weight = static_cast<double>(made.asked.tokens.size());
    return batch;
  }

  /// The batch of windows in the order of a held-out text, of which the first is number `first`.
  Batch scored(const Rows& windows, int64_t first) const {
    return tensors(windows, names_from(first, windows.rows), drawn_for_scores);
  }

  /// The encoder's output at the places to guess: [n, width].
  static Tensor asked_hidden(const MaskedLanguageModel& model, const Batch& batch,
                             const ForwardContext& context) {
    const Tensor hidden = model.hidden(batch.tensors[0], {}, context);
    return embedding(reshape(hidden, Shape{-1, hidden.extent(2)}), batch.tensors[2]);
  }
  static Tensor logits_of(Module& module, const Batch& batch, const ForwardContext& context) {
    const auto& model = dynamic_cast<MaskedLanguageModel&>(module);
    return model.logits(asked_hidden(model, batch, context));
  }

  ClassificationTally tally(Module& model, const TextWindows& windows) const {
    const NoGrad no_grad;
    ClassificationTally out;
    CountedWork work(static_cast<double>(windows.batches()));
    int64_t first = 0;
    for (int64_t i = 0; i < windows.batches(); ++i) {
      const Rows rows = windows.in_order(i).input;
      const Batch batch = scored(rows, first);
      out.add(logits_of(model, batch, {}), batch.tensors[1], batch.weight);
      first += rows.rows;
      work.add();
    }
    return out;
  }

  static constexpr const char* mask_name = "[MASK]";

  LanguageData data_;
  double hidden_share_ = 0.15;
  int64_t token_types_ = 1;
  int64_t epoch_ = 0, max_length_ = 0, batch_size_ = 1;
  uint64_t seed_ = 1;
  double smoothing_ = 0;
};

}  // namespace

TaskEntry task::mlm() {
  return task_entry<MaskedLanguageTask>(
      "mlm", "text to a masked language model: an encoder guesses hidden tokens, as BERT does");
}

}  // namespace heed
