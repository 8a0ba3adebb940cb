// Long sequences: data, batches, scores.
#include "heed/train/tasks/lra/lra.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/spec.h"
#include "heed/attention/variant.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/settings_in_errors.h"
#include "heed/data/batching/shuffle.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/lra/token_prediction.h"

namespace heed {
namespace {

constexpr int64_t max_examples = 10'000'000;      // maximum examples of a split
constexpr int64_t max_baseline_examples = 10000;  // maximum examples for fitting and for scoring baselines
constexpr int64_t bucket_batches = 32;            // batches whose inputs are sorted by length together

}  // namespace

void LongOptions::fields(Fields& f) {
  f("path", path, "the benchmark's files; empty: embedded data");
  f("num_examples", num_examples, {2, max_examples}, "training examples of the embedded data");
  f("validation", validation, {1, max_examples},
    "validation examples at most; they choose the best checkpoint");
  f("test_size", test_size, {1, max_examples}, "test examples of the embedded data");
  f("scored", scored, {0, max_examples}, "test examples scored at most; 0: all");
  f("max_length", max_length, {0, 10'000'000},
    "tokens (bytes or pixels) of an input that are read at most; 0: as many as the model has positions");
  f("mean_over", Choice(mean_over, {"real", "padded", "all"}),
    "what a mean is of: real tokens; the same, divided by model.max_length; all pixels, also those of 0");
  f("whole_batches", whole_batches,
    "scores leave out the examples that do not fill a batch of train.batch_size");
  f("buckets", buckets, "batches hold inputs of like length, out of 32 batches drawn at random");
  f("predict", Choice(predict, {"class", "masked", "causal"}),
    "what is learned: the class; tokens that are hidden; or each token from those before it");
  f("causal", causal, "no token looks at later ones: for attentions that only look back");
  f("hidden_share", hidden_share, "share of tokens that predict = masked hides; 0: the default of the task");
}

void LongOptions::model_fields(Fields& f) {
  f("pool", Choice(pool, {"mean", "first", "last"}),
    "what is classified: the mean of all tokens, a token put first, or the last token");
  f("head", head, {0, max_width}, "hidden width of the classifying head; 0: none");
}

void LongTask::fields(Fields& f) {
  options_.fields(f);
  more_fields(f);
}

void LongTask::model_fields(Fields& f) {
  options_.model_fields(f);
  more_model_fields(f);
}

std::vector<std::pair<std::string, int64_t>> LongTask::small_data() const {
  return {{"num_examples", std::min<int64_t>(options_.num_examples, 200)},
          {"validation", std::min<int64_t>(options_.validation, 20)},
          {"test_size", std::min<int64_t>(options_.test_size, 20)},
          {"scored", options_.scored == 0 ? 20 : std::min<int64_t>(options_.scored, 20)}};
}

void LongTask::check_settings(const Config& config) const {
  check_batch_size(config, "examples");
  if (config.model.max_length < 2)
    fail("model.max_length = ", config.model.max_length, ". Read at least 2 tokens.");
  if (tokens().drop_zeros && inside_attention(config.model.position))
    fail(
        "data.pixel_zero = pad leaves pixels out, so that neighbours are further apart than attention sees: "
        "use model.position = learned or sinusoid, or data.pixel_zero = token.");
  if (tokens().drop_zeros && config.model.short_convolution > 0)
    fail("model.short_convolution = ", config.model.short_convolution,
         ": data.pixel_zero = pad leaves pixels out, so that neighbours are further apart than its taps. "
         "Use data.pixel_zero = token.");
  if (options_.mean_over == LongOptions::MeanOver::all && !tokens().fixed)
    fail("data.mean_over = all: inputs of the task ", config.task_name,
         " differ in length, so the padding of a batch would count. Use real or padded.");
  if (!(options_.hidden_share >= 0 && options_.hidden_share < 1))
    fail("data.hidden_share = ", options_.hidden_share,
         ". It must be above 0 and below 1, or 0 for what the task is given: ", tokens().hidden, ".");
  if (reads_vectors() && !predicts_classes())
    fail("data.predict is not class, but a token of the task ", config.task_name, " is a vector of ",
         tokens().bytes, " pixels, which is no token of a vocabulary. Use ",
         advice("--predict class, or --patch 1.", "data.predict = class, or model.patch = 1."));
  check_causality(config);
  check_more(config);
}

void LongTask::check_causality(const Config& config) const {
  if (options_.causal && options_.pool == Pool::first)
    fail("data.causal = true with model.pool = first: the token put first would see itself alone. Use ",
         "model.pool = last or mean.");
  if (options_.causal && options_.predict == LongOptions::Predict::masked)
    fail("data.causal = true, but hidden tokens are predicted from both sides. Use ",
         advice("--pretrain causal", "train.pretrain = causal"), ", or data.predict = causal.");
  const bool causal = options_.causal || options_.predict == LongOptions::Predict::causal;
  check_encoder_attention(config, causal, options_.causal ? "data.causal = true" : "data.predict = causal");
}

void LongTask::load(const Config& config, const std::vector<NamedBytes>&, const Log& log) {
  check_settings(config);
  const int64_t first = options_.pool == Pool::first ? 1 : 0;
  batch_size_ = config.train.batch_size;
  max_positions_ = config.model.max_length;
  max_tokens_ = max_positions_ - first;
  if (options_.max_length > 0) max_tokens_ = std::min(max_tokens_, options_.max_length);
  seed_ = static_cast<uint64_t>(config.train.seed);
  smoothing_ = config.train.label_smoothing;
  carries_packing_ = default_device == Device::cuda && has_lengths() && !keeps_zeros();
  if (options_.path.empty()) {
    splits_ = make(log);
  } else {
    splits_ = read(find_data(options_.path), log);
    log(text("data        ", options_.path));
  }
  for (const auto& [name, set] : {std::pair{"training", &splits_.train},
                                  {"validation", &splits_.validation},
                                  {"test", &splits_.test}}) {
    if (set->count() < 1)
      fail(Fault::data, config.task_name, ": no ", name, " example is left. Give more data.");
  }
  const Sequences& train = splits_.train;
  if (const int64_t image_tokens = static_cast<int64_t>(train.at(0).size()) / tokens().bytes;
      tokens().fixed && image_tokens > max_tokens_) {
    const bool is_data_limit = options_.max_length == max_tokens_;
    fail(is_data_limit ? "data.max_length = " : "model.max_length = ",
         is_data_limit ? max_tokens_ : max_positions_, ", but an image has ", image_tokens,
         reads_vectors() ? " patches" : " pixels",
         first == 1 && !is_data_limit ? " and a token put first" : "",
         ". Raise it, make data.side smaller, or model.patch larger.");
  }
  baselines_.clear();
  if (predicts_classes()) {
    const auto found =
        baselines(train.slice(0, std::min(train.count(), max_baseline_examples)),
                  splits_.test.slice(0, std::min(splits_.test.count(), max_baseline_examples)));
    for (const Baseline& baseline : found)
      baselines_.push_back({"accuracy", baseline.name, baseline.accuracy});
    baseline_words_ = to_string(found);
  } else {
    baseline_words_ = frequencies();
  }
  metadata_ = {{"recipe", config.preset.empty() ? config.task_name : config.preset},
               {"sha256 training examples", train.sha256()},
               {"sha256 validation examples", splits_.validation.sha256()},
               {"sha256 test examples", splits_.test.sha256()},
               {"baselines", baseline_words_}};
  double total_tokens = 0;
  for (int64_t i = 0; i < train.count(); ++i) total_tokens += static_cast<double>(length(train, i));
  log(text("examples    ", train.count(), " train, ", splits_.validation.count(), " validation, ",
           splits_.test.count(), " test; ",
           std::lround(total_tokens / static_cast<double>(train.count() * train.parts)),
           " tokens each on average, at most ", max_tokens_));
  log("baselines   " + baseline_words_);
}

void LongTask::load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) {
  load(config, artifacts, [](const std::string&) {});
}

std::string LongTask::why_no_pretraining() const {
  if (reads_vectors()) return "model.patch is not 1, and patches are no tokens out of a vocabulary";
  return predicts_classes() ? "" : "data.predict is not class, so tokens are all that is learned";
}

std::unique_ptr<Module> LongTask::model(const Config& config, Rng& rng) const {
  if (!predicts_classes()) {
    return std::make_unique<TokenPredictor>(
        config.model,
        EncoderModel::Options{.vocabulary = tokens().vocabulary,
                              .first = options_.pool == Pool::first,
                              .causal = options_.causal || options_.predict == LongOptions::Predict::causal},
        attention_factory(config.attention.encoder), rng);
  }
  return std::make_unique<Classifier>(
      config.model,
      Classifier::Options{.vocabulary = reads_vectors() ? 0 : tokens().vocabulary,
                          .features = reads_vectors() ? tokens().bytes : 0,
                          .classes = static_cast<int64_t>(classes().size()),
                          .pool = options_.pool,
                          .causal = options_.causal,
                          .head_hidden = options_.head,
                          .mean_over = options_.mean_over == LongOptions::MeanOver::padded
                                           ? config.model.max_length
                                           : int64_t{0},
                          .mean_of_all = options_.mean_over == LongOptions::MeanOver::all,
                          .pairing = pairing()},
      attention_factory(config.attention.encoder), rng);
}

int64_t LongTask::length(const Sequences& set, int64_t example, int64_t part) const {
  const std::string_view bytes = first_tokens(set.at(example, part), max_tokens_);
  int64_t count = static_cast<int64_t>(bytes.size()) / tokens().bytes;
  if (tokens().drop_zeros) count -= std::count(bytes.begin(), bytes.end(), '\0');
  return std::max<int64_t>(count, 1);
}

int64_t LongTask::length(const Sequences& set, int64_t example) const {
  int64_t longest = 1;
  for (int64_t part = 0; part < set.parts; ++part) longest = std::max(longest, length(set, example, part));
  return longest;
}

int64_t LongTask::plan(int64_t epoch) {
  epoch_ = epoch;
  const Sequences& train = splits_.train;
  std::vector<int64_t> order = shuffled(train.count(), seed_, static_cast<uint64_t>(epoch));
  if (options_.buckets && !(tokens().fixed && !tokens().drop_zeros)) {
    std::vector<int64_t> lengths(order.size());
    parallel_rows(train.count(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) lengths[static_cast<size_t>(i)] = length(train, i);
    });
    for (int64_t begin = 0; begin < train.count(); begin += bucket_batches * batch_size_) {
      const int64_t end = std::min(begin + bucket_batches * batch_size_, train.count());
      std::stable_sort(order.begin() + begin, order.begin() + end, [&](int64_t a, int64_t b) {
        return lengths[static_cast<size_t>(a)] < lengths[static_cast<size_t>(b)];
      });
    }
  }
  plan_.clear();
  for (int64_t begin = 0; begin < train.count(); begin += batch_size_)
    plan_.emplace_back(order.begin() + begin, order.begin() + std::min(begin + batch_size_, train.count()));
  if (options_.buckets) shuffle(std::span(plan_), seed_ + 1, static_cast<uint64_t>(epoch));
  return static_cast<int64_t>(plan_.size());
}

Batch LongTask::batch(int64_t position) const {
  const std::vector<int64_t>& numbers = plan_.at(static_cast<size_t>(position));
  return tensors(splits_.train, numbers, static_cast<uint64_t>(epoch_), training_frame(numbers));
}

double LongTask::weight(int64_t position) const {
  if (!predicts_classes()) return batch(position).weight;  // the number of targets is random
  return static_cast<double>(plan_.at(static_cast<size_t>(position)).size());
}

Batch LongTask::shard(int64_t position, const BatchShard& shard) const {
  const std::span<const int64_t> numbers = plan_.at(static_cast<size_t>(position));
  const BatchRows rows = shard.of(static_cast<int64_t>(numbers.size()));
  const auto shard_numbers =
      numbers.subspan(static_cast<size_t>(rows.first), static_cast<size_t>(rows.count));
  const auto drawn = static_cast<uint64_t>(epoch_);
  Batch out;
  Frame frame = training_frame(numbers);
  for (int64_t part = 0; carries_packing_ && part < shard.parts; ++part) {
    const BatchRows of_part = BatchShard{part, shard.parts}.of(static_cast<int64_t>(numbers.size()));
    const auto first = static_cast<size_t>(of_part.first), count = static_cast<size_t>(of_part.count);
    frame.min_tokens = std::max(frame.min_tokens, training_tokens(numbers.subspan(first, count)));
  }
  if (rows.count > 0) out = tensors(splits_.train, shard_numbers, drawn, frame);
  // The number of targets in a batch depends on the lengths of all its inputs.
  out.whole_weight = predicts_classes() ? static_cast<double>(numbers.size())
                                        : tensors(splits_.train, numbers, drawn).weight;
  if (splits_.train.parts == 1) out.rows = rows;  // the two parts of an example are not adjacent
  return out;
}

std::vector<double> LongTask::batch_cost(int64_t position) const {
  const std::vector<int64_t>& numbers = plan_.at(static_cast<size_t>(position));
  const Frame frame = training_frame(numbers);
  const int64_t first = options_.pool == Pool::first ? 1 : 0,
                inputs = static_cast<int64_t>(numbers.size()) * splits_.train.parts;
  const auto rows = static_cast<double>(inputs), longest = static_cast<double>(frame.columns);
  std::vector<double> cost{rows, rows * longest, rows * longest * longest};
  if (!carries_packing_) return cost;
  const int64_t packed =
      packed_rows(training_tokens(numbers), inputs * (frame.columns + first), frame.row_step);
  cost.push_back(static_cast<double>(packed));
  return cost;
}

std::vector<std::string> LongTask::tensor_names() const {
  std::vector<std::string> names{reads_vectors() ? "patches" : "ids", "targets"};
  if (has_lengths()) names.emplace_back("lengths");
  if (tokens().drop_zeros) names.emplace_back("places");
  if (!predicts_classes()) names.emplace_back("rows");
  if (carries_packing_) names.emplace_back("packing");
  return names;
}

Tensor LongTask::logits(Module& model, const Batch& batch, const ForwardContext& given) const {
  const std::vector<Tensor>& tensors = batch.tensors;  // see tensor_names()
  ForwardContext context = given;
  if (carries_packing_) context.packing_table = tensors.back();
  const Tensor lengths = has_lengths() ? tensors[2] : Tensor(),
               places = tokens().drop_zeros ? tensors[3] : Tensor();
  if (!predicts_classes())
    return dynamic_cast<TokenPredictor&>(model)(tensors[0], lengths, asked_rows(batch), context, places);
  return dynamic_cast<Classifier&>(model)(tensors[0], lengths, context, places);
}

Tensor LongTask::loss(Module& model, const Batch& batch, const ForwardContext& context) const {
  const Tensor scores = logits(model, batch, context), &targets = batch.tensors[1];
  if (predicts_classes()) {
    resolve_auxiliary_losses_of_parts(context.losses, scores, targets, splits_.train.parts);
  } else if (context.losses != nullptr && !context.losses->waiting.empty()) {
    const auto without_fill = [asked = static_cast<int64_t>(batch.weight)](const Tensor& x) {
      return view::slice(x, 0, 0, asked);
    };
    resolve_auxiliary_losses(
        context.losses, without_fill(scores.detach()), without_fill(targets),
        asked_of_each(without_fill(asked_rows(batch)), batch[0].extent(0), batch[0].extent(1)));
  }
  return cross_entropy(scores, targets, context.training() ? smoothing_ : 0);
}

}  // namespace heed
