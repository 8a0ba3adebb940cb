// Translation: sentence pairs, encoder-decoder, BLEU.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/attention/variant.h"
#include "heed/core/counted_work.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/config/config.h"
#include "heed/train/decode/translator.h"
#include "heed/train/metrics/bleu.h"
#include "heed/train/metrics/chrf.h"
#include "heed/train/metrics/edit_distance.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/language/translate_batch.h"
#include "heed/train/tasks/language/translate_data.h"
#include "heed/train/tasks/map_provider.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

class Translate final : public Task, public MapProvider, public ExampleProvider {
 public:
  void fields(Fields& f) override { data_.options.fields(f); }
  std::vector<std::pair<std::string, int64_t>> small_data() const override {
    const TranslateOptions& options = data_.options;
    return {{"num_examples", std::min<int64_t>(options.num_examples, 600)},
            {"validation", std::min<int64_t>(options.validation, 20)},
            {"test_size", std::min<int64_t>(options.test_size, 20)},
            {"bleu_pairs", std::min<int64_t>(options.bleu_pairs, 2)}};
  }

  void load(const Config& config, const std::vector<NamedBytes>& artifacts,
            const std::function<void(const std::string&)>& log) override {
    data_.load(config, artifacts, log);
  }

  void test_on(const std::string&) override { data_.all_for_test = true; }

  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) override {
    data_.max_length = config.model.max_length;
    data_.decode = config.decode;
    data_.load_tokenizers(artifacts);
  }

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    if (config.model.kind == ModelKind::seq2seq) {
      const Seq2SeqOptions& recurrent = config.model.recurrent;
      return std::make_unique<Seq2Seq>(
          config.model, recurrent, data_.source().size(), data_.target().size(),
          has_attention(recurrent.wiring) ? attention_factory(config.attention.cross) : AttentionFactory(),
          rng);
    }
    return std::make_unique<EncoderDecoder>(
        config.model, data_.source().size(), data_.target().size(),
        EncoderDecoder::Attentions{attention_factory(config.attention.encoder),
                                   attention_factory(config.attention.decoder),
                                   attention_factory(config.attention.cross)},
        rng);
  }

  std::vector<NamedBytes> artifacts() const override { return data_.artifacts(); }
  std::vector<std::pair<std::string, std::string>> metadata() const override { return data_.metadata(); }

  int64_t plan(int64_t epoch) override {
    plan_ = data_.train->epoch(epoch);
    return static_cast<int64_t>(plan_.size());
  }

  Batch batch(int64_t position) const override {
    return tensors(data_.train->make(plan_.at(static_cast<size_t>(position))));
  }

  double weight(int64_t position) const override {
    double target_tokens = 0;  // end tokens included
    for (const int64_t pair : plan_.at(static_cast<size_t>(position)))
      target_tokens += static_cast<double>(data_.train->pair(pair).target.size() + 1);
    return target_tokens;
  }

  Batch shard(int64_t position, const BatchShard& shard) const override {
    PairBatch pairs = data_.train->make(plan_.at(static_cast<size_t>(position)));
    const BatchRows rows = shard.of(pairs.source.rows);
    double whole_weight = 0;
    for (const int32_t length : pairs.target_out.lengths) whole_weight += length;
    int64_t source_tokens = 0;  // the largest number of any shard
    for (int64_t part = 0; part < shard.parts; ++part) {
      const BatchRows of_part = BatchShard{part, shard.parts}.of(pairs.source.rows);
      source_tokens = std::max(source_tokens, tokens_of(cut(pairs.source, of_part)));
    }
    for (Rows* side : {&pairs.source, &pairs.target_in, &pairs.target_out}) *side = cut(*side, rows);
    if (!data_.train->options().few_shapes) pairs.padded_target_tokens = 0;
    Batch out = rows.count > 0 ? tensors(pairs, source_tokens) : Batch{};
    out.whole_weight = whole_weight;
    out.rows = rows;
    return out;
  }

  std::vector<double> batch_cost(int64_t position) const override {
    const BatchFrame frame = data_.train->frame(plan_.at(static_cast<size_t>(position)));
    const auto rows = static_cast<double>(frame.rows), source = static_cast<double>(frame.source),
               target = static_cast<double>(frame.target),
               target_tokens = static_cast<double>(frame.padded_target_tokens);
    std::vector<double> cost{rows * source,          rows * target,          target_tokens,
                             rows * source * source, rows * target * target, rows * source * target};
    if (data_.carries_packing) cost.push_back(packed_source_rows(position, frame));
    return cost;
  }

  std::vector<std::string> tensor_names() const override {
    std::vector<std::string> names{"source", "source_lengths", "target_in", "targets", "places"};
    if (data_.carries_packing) names.insert(names.end(), {"source_packing", "target_packing"});
    return names;
  }

  Tensor loss(Module& module, const Batch& batch, const ForwardContext& context) const override {
    const auto& model = dynamic_cast<TranslationModel&>(module);
    const Tensor hidden = hidden_rows(model, batch, context), &targets = batch.tensors[3];
    const double smoothing = context.training() ? data_.smoothing : 0;
    if (context.losses == nullptr || context.losses->waiting.empty())
      return model.token_loss(hidden, targets, smoothing);
    const Tensor scores = model.logits(hidden);
    const RealTargets real = real_targets(batch);  // without rows that fill the batch up
    resolve_auxiliary_losses(context.losses, embedding(scores.detach(), real.rows), real.targets,
                             real.of_sentences);
    return cross_entropy(scores, targets, smoothing);
  }

  Scores validate(Module& model) const override {
    Scores scores;
    scores.list.emplace_back("loss", mean_loss(model, *data_.validation));
    const auto count = std::min<int64_t>(data_.options.bleu_pairs, data_.validation->size());
    if (count > 0) {
      const std::vector<Pair> some(data_.validation_text.begin(), data_.validation_text.begin() + count);
      scores.list.emplace_back("bleu",
                               corpus_bleu(outputs(model, some, data_.greedy()), references(some)).score);
    }
    return scores;
  }

  std::vector<ValidationPart> validation_cost(Module& model) const override {
    const auto groups = data_.validation->in_order();
    if (groups.empty()) return {};
    const auto work = [this](const std::vector<int64_t>& group) {
      return static_cast<double>(data_.validation->frame(group).padded_target_tokens);
    };
    // The batch of median length; the longest ones need less memory here than in training.
    const std::vector<int64_t> middle = groups[groups.size() / 2];
    double all = 0, test = 0;
    for (const auto& group : groups) all += work(group);
    for (int64_t i = 0; i < tested().size(); ++i)
      test += static_cast<double>(tested().pair(i).target.size() + 1);
    std::vector<ValidationPart> parts{{.compute =
                                           [this, &model, middle] {
                                             const NoGrad no_grad;
                                             loss(model, tensors(data_.validation->make(middle)), {}).item();
                                           },
                                       .some = work(middle),
                                       .all = all,
                                       .test = test}};
    const auto count = std::min<int64_t>(data_.options.bleu_pairs, data_.validation->size());
    if (count > 0) parts.push_back(decoding_cost(model, data_.validation_text, data_.greedy(), count));
    const auto tested_pairs = static_cast<int64_t>(tested_text().size());
    parts.push_back(decoding_cost(model, tested_text(), data_.decode, tested_pairs));
    std::swap(parts.back().all, parts.back().test);
    return parts;
  }

  Evaluation test(Module& model, const DecodeOptions& decode) const override {
    const bool has_test = !data_.test_text.empty();
    const std::vector<Pair>& pairs = tested_text();
    const std::vector<std::string> made = outputs(model, pairs, decode);
    const std::vector<std::string> wanted = references(pairs);
    const Bleu bleu = corpus_bleu(made, wanted);
    Evaluation out;
    out.scores.lower_is_better = false;
    out.scores.list = {{"bleu", bleu.score},
                       {"chrf", corpus_chrf(made, wanted)},
                       {"wer", word_error_rate(made, wanted).rate()},
                       {"cer", character_error_rate(made, wanted).rate()},
                       {"loss", mean_loss(model, tested())},
                       {"length_ratio", bleu.ratio()}};
    std::vector<std::string> copied;
    for (const Pair& pair : pairs) copied.push_back(pair.source);
    out.notes = {
        text(pairs.size(), has_test ? " test" : " validation", " pairs",
             data_.all_for_test ? text(" of ", data_.options.path, cut_words()) : std::string(), ", ",
             decode.beam_size == 1
                 ? std::string("greedy")
                 : text("beam ", decode.beam_size, ", length penalty ", decode.length_penalty)),
        "BLEU  " + bleu_signature(), "chrF  " + chrf_signature(), bleu.summary(),
        text("copying the source scores BLEU ", std::round(100 * corpus_bleu(copied, wanted).score) / 100)};
    for (size_t i = 0; i < pairs.size(); ++i) {
      out.sentences.push_back({pairs[i].source, wanted[i], made[i]});
      if (i < 20) out.samples.push_back(out.sentences.back());
    }
    return out;
  }

  std::vector<MapView> maps(Module& model, const std::string& given, std::string& caption) const override {
    return maps_with(model, given, {.max_tokens = data_.max_length}, caption);
  }

  std::vector<MapView> maps_with(Module& model, const std::string& given, const MapParts& parts,
                                 std::string& caption) const override {
    if (parts.max_tokens == 0 && !given.empty())
      refuse_long(given, data_.source(), data_.target(), data_.max_length);
    const int64_t max_length =
        parts.max_tokens > 0 ? std::clamp(parts.max_tokens, int64_t{3}, data_.max_length) : data_.max_length;
    return translation_maps(dynamic_cast<TranslationModel&>(model), sentence_of(given), data_.source(),
                            data_.target(), max_length, data_.decode, caption, parts);
  }

  int64_t test_examples() const override { return tested().size(); }

  std::vector<int64_t> test_lengths(int64_t number, int64_t max_tokens) const override {
    const EncodedPair pair = cut_pair(number, max_tokens);
    return {static_cast<int64_t>(pair.source.size()), static_cast<int64_t>(pair.target.size())};
  }

  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const override {
    std::vector<EncodedPair> pairs;
    for (const int64_t number : numbers) pairs.push_back(cut_pair(number, max_tokens));
    std::vector<int64_t> indices(pairs.size());
    std::iota(indices.begin(), indices.end(), 0);
    const PairBatch made = PairBatches(std::move(pairs), tested().options()).make(indices);
    ExampleBatch out{.batch = tensors(made), .rows = {}};
    for (size_t row = 0; row < indices.size(); ++row) {
      const Pair& pair = tested_text()[static_cast<size_t>(numbers[row])];
      out.rows.push_back({.number = numbers[row],
                          .caption = pair.source + "  \u2192  " + pair.target,
                          .input = pieces_of_row(data_.source(), made.source, row),
                          .target_in = pieces_of_row(data_.target(), made.target_in, row),
                          .target_out = pieces_of_row(data_.target(), made.target_out, row)});
    }
    return out;
  }

  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const override {
    const NoGrad no_grad;
    std::vector<int64_t> counts;
    for (const ExampleTokens& row : examples.rows)
      counts.push_back(static_cast<int64_t>(row.target_out.size()));
    const auto& translator = dynamic_cast<TranslationModel&>(model);
    return scores_of_examples(translator.logits(hidden_rows(translator, examples.batch, context)),
                              examples.batch.tensors[3], counts);
  }

  std::vector<ReportSample> test_outputs(Module& model, std::span<const int64_t> numbers,
                                         const DecodeOptions& decode, HeadEditor* editor) const override {
    std::vector<Pair> pairs;
    for (const int64_t number : numbers) pairs.push_back(tested_text()[static_cast<size_t>(number)]);
    const std::vector<std::string> made = outputs(model, pairs, decode, editor), wanted = references(pairs);
    std::vector<ReportSample> out;
    for (size_t i = 0; i < pairs.size(); ++i) out.push_back({pairs[i].source, wanted[i], made[i]});
    return out;
  }

  std::string example_text() const override {
    if (data_.validation_text.empty()) return {};
    return data_.validation_text[0].source + " ||| " + data_.validation_text[0].target;
  }

  LensView logit_lens(Module& model, const std::string& given) const override {
    return translation_lens(dynamic_cast<TranslationModel&>(model), sentence_of(given), data_.source(),
                            data_.target(), data_.max_length, data_.decode);
  }

 private:
  /// The rows of the packed sources of batch number `position`.
  double packed_source_rows(int64_t position, const BatchFrame& frame) const {
    const std::vector<int64_t>& pairs = plan_.at(static_cast<size_t>(position));
    int64_t tokens = frame.rows - static_cast<int64_t>(pairs.size());  // one for each row without a sentence
    for (const int64_t pair : pairs)
      tokens += static_cast<int64_t>(data_.train->pair(pair).source.size()) +
                data_.source().special().around_source();
    const int64_t padded = frame.rows * frame.source;
    return static_cast<double>(packed_rows(tokens, padded, source_row_step(padded)));
  }

  /// The cost of translating so many of the pairs, as part of a validation.
  ValidationPart decoding_cost(Module& model, const std::vector<Pair>& from, DecodeOptions decode,
                               int64_t count) const {
    constexpr int64_t max_timed = 128;
    // An untrained model emits no end token; a trained one's outputs are about as long as their sources.
    decode.max_extra_tokens = 0;
    const std::vector<Pair> pairs(from.begin(), from.begin() + std::min(count, max_timed));
    return {.compute = [this, &model, pairs, decode] { outputs(model, pairs, decode); },
            .some = static_cast<double>(pairs.size()),
            .all = static_cast<double>(count)};
  }

  /// The text of maps(), or one to look at where it is empty.
  std::string sentence_of(const std::string& given) const {
    if (!given.empty()) return given;
    return data_.validation_text.empty() ? "The old man smiles." : data_.validation_text[0].source;
  }

  /// The pairs that test() scores: the test pairs, or those of validation where there are none.
  const PairBatches& tested() const { return data_.test_text.empty() ? *data_.validation : *data_.test; }
  const std::vector<Pair>& tested_text() const {
    return data_.test_text.empty() ? data_.validation_text : data_.test_text;
  }

  /// A note on the number of test pairs that are cut; empty where none is.
  std::string cut_words() const {
    return data_.cut > 0 ? text(" (", data_.cut, " too long for the model and cut)") : std::string();
  }

  EncodedPair cut_pair(int64_t number, int64_t max_tokens) const {
    EncodedPair pair = tested().pair(number);
    if (max_tokens > 0) {  // start and end tokens count, too
      const int64_t room = std::max<int64_t>(source_room(data_.source(), max_tokens), 1);
      pair.source.resize(std::min(pair.source.size(), static_cast<size_t>(room)));
      pair.target.resize(
          std::min(pair.target.size(), static_cast<size_t>(std::max<int64_t>(max_tokens - 1, 1))));
    }
    return pair;
  }

  static std::vector<std::string> pieces_of_row(const Tokenizer& tokenizer, const Rows& rows, size_t row) {
    std::vector<std::string> out;
    const int32_t* ids = rows.ids.data() + static_cast<int64_t>(row) * rows.columns;
    for (int32_t i = 0; i < rows.lengths[row]; ++i) out.push_back(tokenizer.piece(ids[i]));
    return out;
  }

  /// The rows of a shard.
  static Rows cut(const Rows& all, const BatchRows& rows) {
    const auto slice_of = [&](const std::vector<int32_t>& values, int64_t width) {
      return std::vector<int32_t>(values.begin() + rows.first * width,
                                  values.begin() + (rows.first + rows.count) * width);
    };
    return {.rows = rows.count,
            .columns = all.columns,
            .ids = slice_of(all.ids, all.columns),
            .lengths = slice_of(all.lengths, 1)};
  }

  Batch tensors(const PairBatch& pairs, int64_t min_source_tokens = 0) const {
    return translation_batch(pairs, data_.carries_packing, min_source_tokens);
  }

  /// Inputs of the output layer for real tokens only, [n, width]: padding costs nothing in that layer.
  static Tensor hidden_rows(const TranslationModel& model, const Batch& batch, const ForwardContext& given) {
    const ForwardContext context = with_packing(given, batch);
    const Tensor encoded = model.encode(batch.tensors[0], batch.tensors[1], context);
    return model.decode_at(batch.tensors[2], encoded, batch.tensors[1], batch.tensors[4], context);
  }

  /// Mean loss in nats per token, without label smoothing.
  double mean_loss(Module& model, const PairBatches& batches) const {
    const NoGrad no_grad;
    double total = 0, weight = 0;
    CountedWork work(static_cast<double>(batches.size()), "loss");
    for (const auto& indices : batches.in_order()) {
      const Batch batch = tensors(batches.make(indices));
      total += loss(model, batch, {}).item() * batch.weight;
      weight += batch.weight;
      work.add(static_cast<double>(indices.size()));
    }
    return weight > 0 ? total / weight : 0;
  }

  std::vector<std::string> outputs(Module& model, const std::vector<Pair>& pairs, const DecodeOptions& decode,
                                   HeadEditor* editor = nullptr) const {
    std::vector<std::string> sentences;
    for (const Pair& pair : pairs) sentences.push_back(pair.source);
    return translate_all(dynamic_cast<TranslationModel&>(model), sentences, data_.source(), data_.target(),
                         data_.max_length, decode, editor);
  }

  std::vector<std::string> references(const std::vector<Pair>& pairs) const {
    std::vector<std::string> out;
    for (const Pair& pair : pairs) out.push_back(data_.reference(pair.target));
    return out;
  }

  TranslateData data_;
  BatchPlan plan_;
};

}  // namespace

TaskEntry task::translate() {
  return task_entry<Translate>("translate", "sentence pairs to a translator: encoder-decoder, BLEU");
}

}  // namespace heed
