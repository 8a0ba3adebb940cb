// Batches, model, loss and scores of tasks of generated sequences.
#include "heed/train/tasks/synthetic/synthetic_task.h"

#include <algorithm>
#include <numeric>

#include "heed/attention/inspect/head_calls.h"
#include "heed/attention/layered_spec.h"
#include "heed/attention/variant.h"
#include "heed/autograd/autocast.h"
#include "heed/autograd/comparisons.h"
#include "heed/core/ceil_div.h"
#include "heed/core/counted_work.h"
#include "heed/data/batching/shuffle.h"
#include "heed/train/tasks/classification/classification_task.h"
#include "heed/train/tasks/lra/token_prediction.h"
#include "heed/train/tasks/synthetic/sequence_autoencoder.h"

namespace heed {
namespace {

constexpr int64_t max_sequences = 10'000'000;
constexpr int64_t batches_of_new_sequences = 100;      // number of batches in an epoch without end
constexpr uint64_t order_streams = uint64_t{1} << 62;  // streams of the orders of epochs: of no sequence
constexpr int64_t shown_tokens = 256;                  // tokens of a sequence that a map shows

/// Calls f with the model, which is of one of two classes with the same functions.
template <class F>
Tensor with_model(Module& model, F f) {
  if (const auto* decoder = dynamic_cast<const DecoderOnly*>(&model)) return f(*decoder);
  return f(dynamic_cast<const SequenceAutoencoder&>(model));
}

/// The input of the output layer at the scored places: [n, width].
template <class Model>
Tensor hidden_at_places(const Model& model, const Batch& batch, const ForwardContext& context) {
  const Tensor hidden = widened(model.hidden(batch[0], context));
  const Tensor rows = reshape(hidden, Shape{-1, hidden.extent(-1)});
  return batch[2].size() == rows.extent(0) ? rows : embedding(rows, batch[2]);
}

Tensor logits_at_places(Module& model, const Batch& batch, const ForwardContext& context) {
  return with_model(model,
                    [&](const auto& net) { return net.logits(hidden_at_places(net, batch, context)); });
}

/// The number of scored places of each sequence of a batch.
std::vector<int64_t> places_of_each(const Batch& batch) {
  return asked_of_each(batch[2], batch[0].extent(0), batch[0].extent(1));
}

}  // namespace

void SyntheticTask::fields(Fields& f) {
  f("vocabulary", options_.vocabulary, {4, max_positions}, "different tokens, special ones included");
  f("length", options_.length, {4, max_positions}, "tokens of a sequence");
  more_fields(f);
  f("num_examples", options_.num_examples, {0, max_sequences},
    "training sequences, the same in each epoch; 0: new ones in each batch");
  f("validation", options_.validation, {1, max_sequences}, "sequences to choose the best checkpoint");
  f("test_size", options_.test_size, {1, max_sequences}, "test sequences");
}

std::vector<std::pair<std::string, int64_t>> SyntheticTask::small_data() const {
  return {{"validation", std::min<int64_t>(options_.validation, 50)},
          {"test_size", std::min<int64_t>(options_.test_size, 50)}};
}

void SyntheticTask::check_settings(const Config& config) const {
  constexpr int64_t max_batch_size = 100000;  // data may be endless, so nothing else bounds a batch
  check_batch_size(config, "sequences", max_batch_size);
  check_more();
  if (config.model.max_length < max_length())
    fail("model.max_length = ", config.model.max_length, " is less than the ", max_length(),
         " tokens of a sequence. Give at least as many, or shorter sequences.");
  for (const std::string& spec : parse_layered_spec(config.attention.decoder).all()) {
    const Traits& traits = variant_named(parse_spec(spec).name).traits;
    if (!traits.causal)
      fail("attention '", traits.name, "' cannot look back only, which the task ", config.task_name,
           " asks for. Choose another attention.");
  }
}

void SyntheticTask::load(const Config& config, const std::vector<NamedBytes>&,
                         const std::function<void(const std::string&)>& log) {
  check_settings(config);
  seed_ = static_cast<uint64_t>(config.train.seed);
  batch_size_ = config.train.batch_size;
  label_smoothing_ = config.train.label_smoothing;
  prepare();
  log(text("data        ", description(), ", made as they are needed"));
}

void SyntheticTask::load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) {
  load(config, artifacts, [](const std::string&) {});
}

std::unique_ptr<Module> SyntheticTask::model(const Config& config, Rng& rng) const {
  return std::make_unique<DecoderOnly>(config.model, options_.vocabulary,
                                       attention_factory(config.attention.decoder), rng);
}

int64_t SyntheticTask::plan(int64_t epoch) {
  epoch_ = epoch;
  order_.clear();
  if (options_.num_examples == 0) return batches_of_new_sequences;
  order_ = shuffled(options_.num_examples, seed_, order_streams + static_cast<uint64_t>(epoch));
  return ceil_div(options_.num_examples, batch_size_);
}

std::vector<int64_t> SyntheticTask::numbers_of(int64_t position) const {
  if (!order_.empty()) {
    const auto begin = order_.begin() + position * batch_size_;
    return {begin, begin + std::min(batch_size_, order_.end() - begin)};
  }
  std::vector<int64_t> out(static_cast<size_t>(batch_size_));
  std::iota(out.begin(), out.end(), (epoch_ * batches_of_new_sequences + position) * batch_size_);
  return out;
}

double SyntheticTask::weight(int64_t position) const {
  return static_cast<double>(static_cast<int64_t>(numbers_of(position).size()) * training_targets());
}

Batch SyntheticTask::shard(int64_t position, const BatchShard& shard) const {
  const std::vector<int64_t> numbers = numbers_of(position);
  const BatchRows rows = shard.of(static_cast<int64_t>(numbers.size()));
  Batch out;
  if (rows.count > 0) {
    out = sequences(Split::training, std::span(numbers).subspan(static_cast<size_t>(rows.first),
                                                                static_cast<size_t>(rows.count)));
  }
  out.whole_weight = weight(position);
  out.rows = rows;
  return out;
}

std::vector<double> SyntheticTask::batch_cost(int64_t position) const {
  return {static_cast<double>(numbers_of(position).size())};
}

CounterRng SyntheticTask::rng_of(Split split, int64_t number) const {
  return CounterRng(seed_, static_cast<uint64_t>(split) + 4 * static_cast<uint64_t>(number));
}

Batch SyntheticTask::sequences(Split split, std::span<const int64_t> numbers, int64_t length) const {
  std::vector<int32_t> ids, targets, places;
  for (const int64_t number : numbers) {
    const ScoredSequence drawn =
        sequence(split, length > 0 ? length : options_.length, rng_of(split, number));
    for (size_t place = 0; place < drawn.tokens.size(); ++place) {
      if (drawn.targets[place] == not_scored) continue;
      targets.push_back(drawn.targets[place]);
      places.push_back(static_cast<int32_t>(ids.size() + place));
    }
    ids.insert(ids.end(), drawn.tokens.begin(), drawn.tokens.end());
  }
  const auto count = static_cast<int64_t>(numbers.size()), num_targets = static_cast<int64_t>(targets.size());
  Batch batch;
  batch.tensors = {Tensor::of<int32_t>(ids, Shape{count, static_cast<int64_t>(ids.size()) / count}),
                   Tensor::of<int32_t>(targets, Shape{num_targets}),
                   Tensor::of<int32_t>(places, Shape{num_targets})};
  batch.weight = static_cast<double>(num_targets);
  batch.tokens = static_cast<int64_t>(ids.size());
  return batch;
}

Tensor SyntheticTask::loss(Module& model, const Batch& batch, const ForwardContext& context) const {
  const double smoothing = context.training() ? label_smoothing_ : 0;
  return with_model(model, [&](const auto& net) {
    const Tensor hidden = hidden_at_places(net, batch, context), &targets = batch[1];
    if (context.losses == nullptr || context.losses->waiting.empty())
      return net.token_loss(hidden, targets, smoothing);
    const Tensor logits = net.logits(hidden);
    resolve_auxiliary_losses(context.losses, logits.detach(), targets, places_of_each(batch));
    return cross_entropy(logits, targets, smoothing);
  });
}

AnswerTally SyntheticTask::score(Module& model, Split split, int64_t count, int64_t length) const {
  const NoGrad no_grad;
  AnswerTally tally(accuracy_kind(), options_.vocabulary);
  CountedWork work(static_cast<double>(count));
  for (int64_t first = 0; first < count; first += batch_size_) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(batch_size_, count - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const Batch batch = sequences(split, numbers, length);
    tally.add(logits_at_places(model, batch, {}), batch[1], batch[0].extent(0));
    work.add(static_cast<double>(numbers.size()));
  }
  return tally;
}

Scores SyntheticTask::validate(Module& model) const {
  return score(model, Split::validation, options_.validation).scores();
}

std::vector<ValidationPart> SyntheticTask::validation_cost(Module& model) const {
  const int64_t some = std::min(options_.validation, batch_size_);
  return {{.compute = [this, &model, some] { score(model, Split::validation, some); },
           .some = static_cast<double>(some),
           .all = static_cast<double>(options_.validation),
           .test = static_cast<double>(options_.test_size)}};
}

Evaluation SyntheticTask::test(Module& model, const DecodeOptions&) const {
  Evaluation out;
  out.scores = score(model, Split::test, options_.test_size).scores();
  out.notes = {text(options_.test_size, " test sequences: ", description())};
  return out;
}

std::vector<ScoreBaseline> SyntheticTask::baselines() const {
  const auto of_vocabulary = static_cast<size_t>(options_.vocabulary);
  std::vector<int64_t> asked(of_vocabulary), seen_in(of_vocabulary, -1);
  const auto drawn = [&](Split split, int64_t number) {
    return sequence(split, options_.length, rng_of(split, number));
  };
  for (int64_t number = 0; number < options_.validation; ++number) {
    for (const int32_t target : drawn(Split::validation, number).targets)
      if (target != not_scored) ++asked[static_cast<size_t>(target)];
  }
  const auto commonest = std::max_element(asked.begin(), asked.end()) - asked.begin();
  double answers = 0, places = 0, majority = 0, of_sequence = 0;
  for (int64_t token = 0; token < options_.vocabulary; ++token) answers += is_answer(token) ? 1 : 0;
  for (int64_t number = 0; number < options_.test_size; ++number) {
    const ScoredSequence sequence = drawn(Split::test, number);
    double seen = 0;
    for (const int32_t token : sequence.tokens) {
      int64_t& last_seen = seen_in[static_cast<size_t>(token)];
      if (is_answer(token) && std::exchange(last_seen, number) != number) ++seen;
    }
    for (const int32_t target : sequence.targets) {
      if (target == not_scored) continue;
      ++places;
      majority += target == commonest ? 1 : 0;
      of_sequence += seen_in[static_cast<size_t>(target)] == number ? 1 / seen : 0;
    }
  }
  const bool by_token = accuracy_kind() == AccuracyKind::tokens_of_batches;
  const std::string score = by_token ? "micro_accuracy" : "accuracy";
  std::vector<ScoreBaseline> out{{"accuracy", "any answer", 1 / answers},
                                 {score, "the commonest answer", majority / places}};
  if (of_sequence > 0) out.push_back({score, "an answer that the sequence holds", of_sequence / places});
  return out;
}

std::string SyntheticTask::token_name(int64_t token) const { return text(token); }

ExampleTokens SyntheticTask::tokens_of(int64_t number) const {
  const ScoredSequence drawn = sequence(Split::test, options_.length, rng_of(Split::test, number));
  const auto asked = std::count_if(drawn.targets.begin(), drawn.targets.end(),
                                   [](int32_t target) { return target != not_scored; });
  ExampleTokens out{.number = number,
                    .caption = text("test sequence ", number, ", ", asked, " places are scored")};
  for (const int32_t token : drawn.tokens) out.input.push_back(token_name(token));
  return out;
}

std::vector<MapView> SyntheticTask::maps_with(Module& model, const std::string& given, const MapParts& parts,
                                              std::string& caption) const {
  std::optional<NoGrad> no_grad;
  turn_gradients_off(no_grad, parts);
  const int64_t number = example_number(given, test_examples(), "test sequence");
  ExampleTokens tokens = tokens_of(number);
  tokens.input.resize(std::min<size_t>(tokens.input.size(), shown_tokens));
  const Batch batch = sequences(Split::test, std::span(&number, 1));
  MapRecorder recorder = recorder_for(parts);
  const Tensor logits = logits_at_places(model, batch, {.recorder = &recorder});
  explain_choice(logits, parts);
  const double right = scores_of_examples(logits.detach(), batch[1], places_of_each(batch))[0].right;
  caption = text(tokens.caption, ", ", right, " of them right");
  return self_attention_views(model, recorder, "decoder self", tokens.input);
}

std::vector<int64_t> SyntheticTask::test_lengths(int64_t number, int64_t) const {
  return {static_cast<int64_t>(tokens_of(number).input.size())};
}

ExampleBatch SyntheticTask::test_batch(std::span<const int64_t> numbers, int64_t) const {
  ExampleBatch out{.batch = sequences(Split::test, numbers), .rows = {}};
  for (const int64_t number : numbers) out.rows.push_back(tokens_of(number));
  return out;
}

std::vector<KeySwap> SyntheticTask::key_swaps(int64_t count) const {
  std::vector<KeySwap> out;
  for (int64_t number = 0; values_behind_keys() && number < std::min(count, options_.test_size); ++number) {
    const ScoredSequence drawn = sequence(Split::test, options_.length, rng_of(Split::test, number));
    if (std::optional<KeySwap> found = key_swap(drawn)) out.push_back(std::move(*found));
  }
  if (out.empty())
    fail(
        "this task asks for no value that stood behind its key in the sequence, besides that of another "
        "key. ",
        "Take a run of mqar, mad-recall or mad-noisy.");
  return out;
}

std::vector<int64_t> SyntheticTask::answers(Module& model, const Tensor& ids, std::span<const int32_t> rows,
                                            const ForwardContext& context) const {
  const NoGrad no_grad;
  Batch batch;
  const Tensor places = Tensor::of<int32_t>(rows, Shape{std::ssize(rows)});
  batch.tensors = {ids, places, places};  // no target is read
  std::vector<int64_t> out;
  for (const double token : argmax(logits_at_places(model, batch, context), 1).to_doubles())
    out.push_back(static_cast<int64_t>(token));
  return out;
}

std::vector<ExampleScore> SyntheticTask::example_scores(Module& model, const ExampleBatch& examples,
                                                        const ForwardContext& context) const {
  const NoGrad no_grad;
  return scores_of_examples(logits_at_places(model, examples.batch, context), examples.batch[1],
                            places_of_each(examples.batch));
}

}  // namespace heed
