// Language modelling: characters, bytes or subwords, decoder-only model, loss in nats per token.
#include <algorithm>

#include "heed/attention/inspect/head_calls.h"
#include "heed/attention/variant.h"
#include "heed/core/counted_work.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/streamed_text.h"
#include "heed/nn/packing.h"
#include "heed/train/config/config.h"
#include "heed/train/decode/logit_lens.h"
#include "heed/train/decode/sampling.h"
#include "heed/train/metrics/perplexity.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/language/lm_data.h"
#include "heed/train/tasks/map_provider.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

class LanguageModel final : public Task, public MapProvider, public ExampleProvider {
 public:
  void fields(Fields& f) override { data_.options.fields(f); }
  std::vector<std::pair<std::string, int64_t>> small_data() const override {
    return {{"num_examples", std::min<int64_t>(data_.options.num_examples, 20000)},
            {"eval_batches", std::min<int64_t>(data_.options.eval_batches, 1)}};
  }

  void load(const Config& config, const std::vector<NamedBytes>& artifacts,
            const std::function<void(const std::string&)>& log) override {
    data_.load(config, artifacts, log);
    max_length_ = config.model.max_length;
    smoothing_ = config.train.label_smoothing;
  }

  void test_on(const std::string& path) override { data_.test_on(path); }

  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) override {
    max_length_ = config.model.max_length;
    data_.load_tokenizer(artifacts);
  }

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return std::make_unique<DecoderOnly>(config.model, data_.tokenizer().size(),
                                         attention_factory(config.attention.decoder), rng);
  }

  std::vector<NamedBytes> artifacts() const override { return data_.artifacts(); }
  std::vector<std::pair<std::string, std::string>> metadata() const override { return data_.metadata(); }

  // Windows start at random, so an epoch has as many batches as would cover the text once.
  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    return data_.train->batches();
  }

  Batch batch(int64_t position) const override { return tensors(windows_at(position)); }

  Batch shard(int64_t position, const BatchShard& shard) const override {
    const WindowBatch whole = windows_at(position);
    const BatchRows rows = shard.of(whole.input.rows);
    Batch out = rows.count > 0 ? tensors(whole.some_rows(rows.first, rows.count)) : Batch{};
    out.whole_weight = static_cast<double>(whole.input.rows * whole.input.columns);
    out.rows = rows;
    return out;
  }

  std::vector<std::string> tensor_names() const override {
    std::vector<std::string> names{"input", "targets"};
    if (!data_.train || data_.train->num_documents() == 1) return names;
    names.emplace_back("document_lengths");
    if (default_device == Device::cuda) names.emplace_back("packing");
    return names;
  }

  Tensor loss(Module& module, const Batch& batch, const ForwardContext& context) const override {
    const auto& model = dynamic_cast<DecoderOnly&>(module);
    const Tensor hidden = hidden_of(model, batch, context), &targets = batch.tensors[1];
    const double smoothing = context.training() ? smoothing_ : 0;
    if (context.losses == nullptr || context.losses->waiting.empty())
      return model.token_loss(hidden, targets, smoothing);
    const Tensor logits = model.logits(hidden);
    resolve_auxiliary_losses(context.losses, reshape(logits.detach(), Shape{-1, logits.extent(-1)}),
                             reshape(targets, Shape{-1}), lengths_of_sequences(batch));
    return cross_entropy(logits, targets, smoothing);
  }

  Scores validate(Module& model) const override {
    Scores out{.list = {{"loss", mean_loss(model, *data_.validation.windows).first}}};
    if (data_.estimate) {
      const NoGrad no_grad;
      double total = 0;
      CountedWork work(static_cast<double>(data_.options.eval_batches), "estimate");
      for (int64_t i = 0; i < data_.options.eval_batches; ++i) {
        total += loss(model, tensors(data_.estimate->random(i)), {}).item();
        work.add();
      }
      out.list.emplace_back("estimate", total / static_cast<double>(data_.options.eval_batches));
    }
    return out;
  }

  std::vector<ValidationPart> validation_cost(Module& model) const override {
    const auto computed = [this, &model](const WindowBatch& windows) {
      const NoGrad no_grad;
      loss(model, tensors(windows), {}).item();
    };
    const TextWindows& windows = *data_.validation.windows;
    const WindowBatch first = windows.in_order(0);
    std::vector<ValidationPart> parts{{.compute = [=] { computed(first); },
                                       .some = static_cast<double>(first.input.rows * first.input.columns),
                                       .all = static_cast<double>(windows.size() - 1),
                                       .test = tokens_read(*data_.test.windows)},
                                      {.compute = [this, &model] { sample_text(model, timed_tokens); },
                                       .some = timed_tokens,
                                       .all = 0,
                                       .test = sampled_tokens}};
    if (data_.estimate) {
      parts.push_back({.compute = [=, drawn = data_.estimate->random(0)] { computed(drawn); },
                       .some = 1,
                       .all = static_cast<double>(data_.options.eval_batches)});
    }
    return parts;
  }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    Evaluation out;
    const HeldOutText& scored = data_.test;
    const auto [loss, tokens] = mean_loss(model, *scored.windows);
    out.scores.list = {{"loss", loss},
                       {"perplexity", perplexity_of(loss)},
                       {"bits_per_byte", bits_per_byte(loss * tokens, scored.bytes)},
                       {"word_perplexity", word_perplexity(loss * tokens, scored.words)}};
    out.notes = {text(static_cast<int64_t>(tokens), " tokens of ", data_.tested_text(max_length_))};
    return out;
  }

  void add_samples(Module& model, Evaluation& tested) const override {
    std::string why_none;
    const std::vector<int32_t> made = sample_text(model, sampled_tokens, &why_none);
    if (why_none.empty())
      tested.samples.push_back({.source = "(temperature 0.8, top-k 200)", .hypothesis = text_of(made)});
    else
      tested.notes.push_back("no sample of text: " + why_none);
  }

  std::vector<MapView> maps(Module& module, const std::string& given, std::string& caption) const override {
    return maps_with(module, given, {}, caption);
  }

  std::vector<MapView> maps_with(Module& module, const std::string& given, const MapParts& parts,
                                 std::string& caption) const override {
    std::optional<NoGrad> no_grad;
    turn_gradients_off(no_grad, parts);
    auto& model = dynamic_cast<DecoderOnly&>(module);
    const std::vector<int32_t> ids = ids_of(given, parts.max_tokens);
    caption = text_of(ids);
    MapRecorder recorder = recorder_for(parts);
    const Tensor logits = model(as_batch(ids), {.recorder = &recorder});
    explain_choice(reshape(logits, Shape{-1, logits.extent(-1)}), parts);
    return self_attention_views(model, recorder, "decoder self", pieces(ids));
  }

  int64_t test_examples() const override { return data_.test.windows->num_windows(); }

  std::vector<int64_t> test_lengths(int64_t, int64_t max_tokens) const override {
    return {max_tokens > 0 ? std::min(max_tokens, max_length_) : max_length_};
  }

  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const override {
    const WindowBatch made = data_.test.windows->windows(numbers, max_tokens);
    ExampleBatch out{.batch = tensors(made), .rows = {}};
    for (size_t row = 0; row < numbers.size(); ++row) {
      const auto begin = made.input.ids.begin() + static_cast<int64_t>(row) * made.input.columns;
      const std::vector<int32_t> ids(begin, begin + made.input.columns);
      out.rows.push_back({.number = numbers[row], .caption = text_of(ids), .input = pieces(ids)});
    }
    return out;
  }

  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const override {
    const NoGrad no_grad;
    const std::vector<int64_t> counts(examples.rows.size(), examples.batch.tensors[1].extent(1));
    return scores_of_examples(dynamic_cast<DecoderOnly&>(model)(examples.batch.tensors[0], context),
                              examples.batch.tensors[1], counts);
  }

  LensView logit_lens(Module& module, const std::string& given) const override {
    const NoGrad no_grad;
    const std::vector<int32_t> ids = ids_of(given);
    LensView lens = lens_view(dynamic_cast<DecoderOnly&>(module).layer_logits(as_batch(ids)),
                              [&](int32_t id) { return data_.tokenizer().piece(id); });
    lens.caption = text_of(ids);
    lens.tokens = pieces(ids);
    lens.next.assign(lens.tokens.begin() + 1, lens.tokens.end());
    lens.next.emplace_back();
    check(lens);
    return lens;
  }

 private:
  static constexpr int64_t sampled_tokens = 400, timed_tokens = 16;

  std::string text_of(const std::vector<int32_t>& ids) const {
    return as_utf8(decode_lines(data_.tokenizer(), ids));
  }
  std::vector<std::string> pieces(const std::vector<int32_t>& ids) const {
    std::vector<std::string> out;
    for (const int32_t id : ids) out.push_back(data_.tokenizer().piece(id));
    return out;
  }
  /// The tokens as a batch of one sequence, i32 [1, T].
  static Tensor as_batch(const std::vector<int32_t>& ids) {
    return Tensor::of<int32_t>(ids, Shape{1, static_cast<int64_t>(ids.size())});
  }

  /// Tokens that the model writes. `why_none` gets the reason where it cannot: some attentions can train but
  /// not decode.
  std::vector<int32_t> sample_text(Module& model, int64_t count, std::string* why_none = nullptr) const {
    std::vector<int32_t> made;
    CountedWork work(static_cast<double>(count));
    try {
      sample(dynamic_cast<DecoderOnly&>(model), {data_.opening[0]},
             {.max_new_tokens = count, .on_token = [&](int32_t id) {
                made.push_back(id);
                work.add();
                return true;
              }});
    } catch (const Error& error) {
      if (why_none != nullptr) *why_none = error.what();
    }
    return made;
  }

  /// The tokens of a text, or of the opening where it is empty; cut where `max_tokens` is above 0.
  std::vector<int32_t> ids_of(const std::string& given, int64_t max_tokens = 0) const {
    std::vector<int32_t> ids = given.empty() ? data_.opening : encode_prompt(data_.tokenizer(), given);
    if (max_tokens > 0)
      ids.resize(std::min(ids.size(), static_cast<size_t>(std::min(max_tokens, max_length_))));
    if (ids.empty()) fail("the text has no token. Give one of at least one.");
    if (static_cast<int64_t>(ids.size()) > max_length_)
      fail("the text has ", ids.size(), " tokens, and the model reads ", max_length_,
           " at most. Shorten it.");
    return ids;
  }

  /// Tokens that the windows of the test have in all: with a stride, many are read more than once.
  double tokens_read(const TextWindows& windows) const {
    const int64_t scored = windows.size() - 1, stride = data_.options.stride;
    if (stride == 0 || scored <= max_length_) return static_cast<double>(scored);
    return static_cast<double>(((scored - max_length_) / stride + 1) * max_length_);
  }

  WindowBatch windows_at(int64_t position) const {
    return data_.train->random(epoch_ * data_.train->batches() + position);
  }

  /// Ids and targets [B, T]. Where windows consist of documents, these have one row, and their lengths
  /// follow; on a GPU also the Packing::table(), for a number of documents that is the same for all batches.
  Batch tensors(const WindowBatch& windows) const {
    const Shape shape{windows.input.rows, windows.input.columns};
    Batch batch;
    batch.tensors = {Tensor::of<int32_t>(windows.input.ids, shape),
                     Tensor::of<int32_t>(windows.target.ids, shape)};
    batch.tokens = shape.size();
    batch.weight = static_cast<double>(batch.tokens);
    if (windows.documents.empty()) return batch;
    const bool carries_packing = default_device == Device::cuda;
    std::vector<int32_t> lengths;
    for (std::vector<int32_t> of_row : windows.documents) {
      if (carries_packing) of_row.resize(static_cast<size_t>(windows.max_documents), 0);
      lengths.insert(lengths.end(), of_row.begin(), of_row.end());
    }
    batch.tensors.push_back(Tensor::of<int32_t>(lengths, Shape{static_cast<int64_t>(lengths.size())}));
    if (carries_packing) batch.tensors.push_back(packing_table(lengths, max_length_));
    return batch;
  }

  /// The input of the output layer for a batch of tensors(): [B, T, width].
  static Tensor hidden_of(const DecoderOnly& model, const Batch& batch, const ForwardContext& given) {
    const Tensor& ids = batch.tensors[0];
    if (batch.tensors.size() < 3) return model.hidden(ids, given);
    ForwardContext context = given;
    if (batch.tensors.size() > 3) context.packing_table = batch.tensors[3];
    const Tensor rows =
        model.hidden_of_documents(reshape(ids, Shape{1, ids.size()}), batch.tensors[2], context);
    return reshape(rows, Shape{ids.extent(0), ids.extent(1), -1});
  }

  /// The lengths of the sequences that attentions see: of documents, or of whole windows.
  static std::vector<int64_t> lengths_of_sequences(const Batch& batch) {
    const Shape shape = batch.tensors[0].shape();
    if (batch.tensors.size() < 3) return std::vector<int64_t>(static_cast<size_t>(shape[0]), shape[1]);
    std::vector<int64_t> out;
    for (const double length : batch.tensors[2].to_doubles()) out.push_back(static_cast<int64_t>(length));
    return out;
  }

  /// Mean loss over a text in nats per token, and its number of tokens.
  std::pair<double, double> mean_loss(Module& model, const TextWindows& windows) const {
    const NoGrad no_grad;
    double total_loss = 0, num_tokens = 0;
    CountedWork work(static_cast<double>(windows.batches()));
    for (int64_t i = 0; i < windows.batches(); ++i) {
      const WindowBatch window = windows.in_order(i);
      const Batch batch = tensors(window);
      const int64_t first = window.first_scored, columns = window.input.columns;
      const auto& net = dynamic_cast<DecoderOnly&>(model);
      const Tensor hidden = hidden_of(net, batch, {});
      const double num_scored = static_cast<double>(window.input.rows * (columns - first));
      const Tensor loss = net.token_loss(slice(hidden, 1, first, columns),
                                         contiguous(slice(batch.tensors[1], 1, first, columns)));
      total_loss += loss.item() * num_scored;
      num_tokens += num_scored;
      work.add();
    }
    return {total_loss / num_tokens, num_tokens};
  }

  LanguageData data_;
  int64_t epoch_ = 0, max_length_ = 0;
  double smoothing_ = 0;
};

}  // namespace

TaskEntry task::lm() {
  return task_entry<LanguageModel>(
      "lm", "text to a language model: characters, bytes or pieces, decoder-only, nats a token");
}

}  // namespace heed
