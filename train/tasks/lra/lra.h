// Base of the Long Range Arena tasks: long byte sequences, one encoder, classes, baselines.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/data/baselines.h"
#include "heed/data/text/labelled_sequences.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/tasks/classification/classification_task.h"

namespace heed {

/// Training, validation and test examples.
struct LongSplits {
  Sequences train;       ///< learned from
  Sequences validation;  ///< chooses the best checkpoint
  Sequences test;        ///< for the final score
};

/// Settings of every task over long sequences; a recipe fixes each, and the run records it.
struct LongOptions {
  std::string path;              ///< folder or file of the benchmark; empty: embedded data
  int64_t num_examples = 96000;  ///< training examples of the embedded data
  int64_t validation = 2000;     ///< maximum number of validation examples
  int64_t test_size = 2000;      ///< test examples of the embedded data
  int64_t scored = 0;            ///< maximum number of test examples that are scored; 0: all
  int64_t max_length = 0;        ///< maximum number of tokens of an input that are read; 0: all
  Pool pool = Pool::mean;  ///< what is classified: the mean of all tokens, a token put first, or the last
  bool causal = false;     ///< no token attends to later ones
  /// The tokens that a mean is taken over: the real ones; the real ones, divided by model.max_length; or all
  /// tokens of an image, those of 0 included, which no token attends to.
  enum class MeanOver { real, padded, all };
  MeanOver mean_over = MeanOver::real;  ///< what Pool::mean is taken over
  int64_t head = 0;                     ///< hidden width of the classifying head; 0: none
  bool whole_batches = false;  ///< scores leave out the examples that do not fill a batch of train.batch_size
  bool buckets = true;         ///< batches hold inputs of like length, out of 32 batches drawn at random
  /// The targets: classes; hidden tokens; or each token from those before it.
  enum class Predict { classes, masked, causal };
  Predict predict = Predict::classes;  ///< masked and causal are pre-training: train/loop/pretraining.h
  double hidden_share = 0;             ///< fraction of tokens hidden with predict = masked; 0: Tokens::hidden
  void fields(Fields& f);              ///< names the settings of [data] with their help
  void model_fields(Fields& f);        ///< names the settings of [model] with their help
};

/// A task that classifies byte strings. Subclasses provide the data; tokens, batches, model, loss and scores
/// are here. Tay et al. 2021, arXiv 2011.04006. With data.predict the model learns to predict tokens instead:
/// see train/loop/pretraining.h.
class LongTask : public Task, public MapProvider, public ExampleProvider {
 public:
  using Log = std::function<void(const std::string&)>;  ///< takes a line for people

  void fields(Fields& f) final;
  void model_fields(Fields& f) final;
  std::vector<std::pair<std::string, int64_t>> small_data() const final;
  void check_settings(const Config& config) const final;
  /// Reads `path` or generates, checks lengths, fits baselines.
  void load(const Config& config, const std::vector<NamedBytes>& artifacts, const Log& log) final;
  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) final;
  std::unique_ptr<Module> model(const Config& config, Rng& rng) const final;
  std::vector<std::pair<std::string, std::string>> metadata() const final { return metadata_; }
  std::vector<ScoreBaseline> baselines() const final { return baselines_; }
  int64_t plan(int64_t epoch) final;
  Batch batch(int64_t position) const final;
  double weight(int64_t position) const final;
  Batch shard(int64_t position, const BatchShard& shard) const final;
  std::vector<double> batch_cost(int64_t position) const final;
  std::vector<ValidationPart> validation_cost(Module& model) const final;
  std::vector<std::string> tensor_names() const final;
  Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const final;
  Scores validate(Module& model) const final;
  Evaluation test(Module& model, const DecodeOptions& decode) const final;
  std::vector<MapView> maps(Module& model, const std::string& given, std::string& caption) const final {
    return maps_with(model, given, {}, caption);
  }
  std::vector<MapView> maps_with(Module& model, const std::string& given, const MapParts& parts,
                                 std::string& caption) const final;
  int64_t test_examples() const final;
  std::vector<int64_t> test_lengths(int64_t number, int64_t max_tokens) const final;
  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const final;
  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const final;
  std::string why_no_pretraining() const final;

 protected:
  /// How bytes of an input become tokens.
  struct Tokens {
    int64_t vocabulary = 0;   ///< number of token ids, padding included
    int64_t shift = 0;        ///< the token id of byte b is b + shift
    bool fixed = false;       ///< all inputs have the same length
    bool drop_zeros = false;  ///< zero bytes are padding anywhere and are dropped
    double hidden = 0.5;      ///< fraction of tokens hidden with predict = masked
    int64_t bytes = 1;        ///< bytes of one token; above 1 it is their vector, standardised, and no id
    double mean = 0;          ///< mean of bytes: subtracted from those of such vectors
    double deviation = 255;   ///< standard deviation of bytes: divides those of such vectors
  };

  /// Settings of a subclass in the group "data".
  virtual void more_fields(Fields&) {}
  /// Settings of a subclass in the group "model".
  virtual void more_model_fields(Fields&) {}
  /// A usage error for illegal options of the subclass.
  virtual void check_more(const Config&) const {}
  virtual Tokens tokens() const = 0;  ///< how bytes become tokens
  /// Names of the classes, in the order of their labels.
  virtual std::vector<std::string> classes() const = 0;
  virtual Pairing pairing() const { return Pairing::none; }  ///< other than none: an example has two inputs
  /// Generates the embedded data, and logs what they are and where to get the real ones.
  virtual LongSplits make(const Log& log) const = 0;
  /// Reads the benchmark's files.
  virtual LongSplits read(const Path& path, const Log& log) const = 0;
  /// Baselines fitted to `train_set` and scored on `test_set`.
  virtual std::vector<Baseline> baselines(const Sequences& train_set, const Sequences& test_set) const = 0;
  /// The picture of an input whose bytes are pixels; null: they are no pixels.
  virtual std::shared_ptr<TokenPicture> picture(std::string_view) const { return nullptr; }
  /// The label of a token on a map. The default, for text, is the character, or the number of the byte.
  virtual std::string token_name(uint8_t byte, int64_t place) const;

  /// The first data.num_examples are for training, the next data.validation for validation, all others for
  /// the test.
  LongSplits cut(const Sequences& all) const;
  /// Moves up to data.validation and at most a tenth of the training examples to validation: the last ones,
  /// or random ones if `shuffle`.
  static void hold_out(LongSplits& splits, int64_t validation, bool shuffle);

  LongOptions options_;  ///< as the config sets them

 private:
  /// A usage error where the attention, or what is learned, does not go with data.causal.
  void check_causality(const Config& config) const;
  bool predicts_classes() const { return options_.predict == LongOptions::Predict::classes; }
  /// Zero pixels stay in the batch, behind all others and past the length.
  bool keeps_zeros() const { return tokens().drop_zeros && options_.mean_over == LongOptions::MeanOver::all; }
  /// The number of examples, out of `count`, that are scored.
  int64_t scored_of(int64_t count) const;
  bool has_lengths() const { return !tokens().fixed || tokens().drop_zeros; }
  /// Number of an example's tokens that are read; of a pair, of the longer input. At least 1.
  int64_t length(const Sequences& set, int64_t example) const;
  /// Number of tokens that are read of input number `part` of an example. At least 1.
  int64_t length(const Sequences& set, int64_t example, int64_t part) const;
  /// True where a token is a vector of several bytes.
  bool reads_vectors() const { return tokens().bytes > 1; }
  /// The bytes of an input's first tokens, at most `max_tokens`.
  std::string_view first_tokens(std::string_view bytes, int64_t max_tokens) const {
    return bytes.substr(0, static_cast<size_t>(max_tokens * tokens().bytes));
  }
  /// The columns that an example takes up in a batch: its length, or all its pixels.
  int64_t columns(const Sequences& set, int64_t example) const {
    return keeps_zeros() ? static_cast<int64_t>(set.at(example).size()) : length(set, example);
  }
  /// The columns of a batch of these examples: those of the longest example.
  int64_t batch_columns(const Sequences& set, std::span<const int64_t> numbers) const;
  /// Token ids of the inputs of a batch, row by row: all first parts, then all second parts of the examples.
  struct TokenTable {
    std::vector<int32_t> ids;      // [rows, columns], padded
    std::vector<int32_t> places;   // with dropped zeros: [rows, columns and a token put first]; else empty
    std::vector<int32_t> lengths;  // [rows], with a token put first
  };
  TokenTable token_table(const Sequences& set, std::span<const int64_t> numbers, int64_t num_columns) const;
  /// The size of a batch's tensors.
  struct Frame {
    int64_t columns = 1;     // padded length of the inputs
    int64_t row_step = 1;    // the number of packed rows is a multiple of it
    int64_t min_tokens = 0;  // packed rows have room for as many, which makes equal rows of all shards
  };
  /// The frame of a training batch of these examples. On a device it is one of few, so that steps of equal
  /// shapes are replayed: columns are at most 16 multiples of a step, and packed rows those of half of one.
  Frame training_frame(std::span<const int64_t> numbers) const;
  /// Number of tokens of training examples, with a token put first in each input.
  int64_t training_tokens(std::span<const int64_t> numbers) const;
  /// A batch of this frame. The hidden tokens are a pure function of (seed, drawn, example).
  Batch tensors(const Sequences& set, std::span<const int64_t> numbers, uint64_t drawn,
                const Frame& frame) const;
  Batch tensors(const Sequences& set, std::span<const int64_t> numbers, uint64_t drawn) const {
    return tensors(set, numbers, drawn, Frame{.columns = batch_columns(set, numbers)});
  }
  /// A batch of inputs whose tokens are vectors, all of the same length.
  Batch vectors(const Sequences& set, std::span<const int64_t> numbers) const;
  Tensor logits(Module& model, const Batch& batch, const ForwardContext& context) const;
  /// The positions to predict, AskedTokens::rows.
  const Tensor& asked_rows(const Batch& batch) const {
    return batch.tensors.at(batch.tensors.size() - (carries_packing_ ? 2 : 1));
  }
  /// The places of the tokens of an input, ascending, without zero pixels where those are left out.
  std::vector<int32_t> places_of(std::string_view bytes) const;
  /// Labels of the tokens of an input on a map.
  std::vector<std::string> token_names(std::string_view bytes) const;
  /// Test examples by their numbers, each cut to the tokens that the model reads.
  Sequences cut_examples(std::span<const int64_t> numbers, int64_t max_tokens) const;
  /// The first `count` examples in batches for scoring, shortest first.
  std::vector<std::vector<int64_t>> scored_together(const Sequences& set, int64_t count) const;
  /// Number of tokens of these batches, which the cost of scoring grows with.
  double tokens_of(const Sequences& set, std::span<const std::vector<int64_t>> batches) const;
  /// Number of test examples that are scored.
  int64_t tested_count() const;
  ClassificationTally score(Module& model, const Sequences& set, int64_t count) const;
  /// Accuracy first for classes, loss first for tokens.
  Scores scores_of(const ClassificationTally& tally) const;
  /// Baselines of token prediction by token frequency: sets baselines_, returns them as text.
  std::string frequencies();

  LongSplits splits_;
  std::vector<ScoreBaseline> baselines_;
  std::string baseline_words_;
  int64_t batch_size_ = 1;     // examples
  int64_t max_positions_ = 0;  // positions of the model, with a token put first
  int64_t max_tokens_ = 0;     // tokens of an input that are read
  int64_t epoch_ = 0;          // planned last
  uint64_t seed_ = 1;
  double smoothing_ = 0;
  bool carries_packing_ = false;  // batches have a Packing::table(), since lengths are in device memory
  std::vector<std::vector<int64_t>> plan_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace heed
