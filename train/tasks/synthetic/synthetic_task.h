// Base of tasks of generated sequences: a causal model predicts the tokens of the places that are scored.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/scored_sequence.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/map_provider.h"
#include "heed/train/tasks/recall_provider.h"
#include "heed/train/tasks/synthetic/answer_tally.h"

namespace heed {

/// Settings of every task of generated sequences.
struct SyntheticOptions {
  int64_t vocabulary = 16;       ///< tokens, special ones included
  int64_t length = 128;          ///< tokens of a sequence
  int64_t num_examples = 12800;  ///< training sequences, the same in each epoch; 0: new ones in each batch
  int64_t validation = 1000;     ///< sequences that choose the best checkpoint
  int64_t test_size = 1280;      ///< test sequences
};

/// A task whose sequences are drawn when they are needed: each is a pure function of (seed, split, number).
/// Subclasses draw them; batches, model, loss, scores and baselines are here.
class SyntheticTask : public Task, public MapProvider, public ExampleProvider, public RecallProvider {
 public:
  void fields(Fields& f) final;
  std::vector<std::pair<std::string, int64_t>> small_data() const final;
  void check_settings(const Config& config) const final;
  void load(const Config& config, const std::vector<NamedBytes>& artifacts,
            const std::function<void(const std::string&)>& log) final;
  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) final;
  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override;
  std::vector<ScoreBaseline> baselines() const final;
  int64_t plan(int64_t epoch) final;
  Batch batch(int64_t position) const final { return sequences(Split::training, numbers_of(position)); }
  double weight(int64_t position) const final;
  Batch shard(int64_t position, const BatchShard& shard) const final;
  std::vector<double> batch_cost(int64_t position) const final;
  std::vector<ValidationPart> validation_cost(Module& model) const final;
  std::vector<std::string> tensor_names() const final { return {"ids", "targets", "places"}; }
  Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const final;
  Scores validate(Module& model) const final;
  Evaluation test(Module& model, const DecodeOptions& decode) const override;
  std::vector<MapView> maps(Module& model, const std::string& text, std::string& caption) const final {
    return maps_with(model, text, {}, caption);
  }
  std::vector<MapView> maps_with(Module& model, const std::string& text, const MapParts& parts,
                                 std::string& caption) const final;
  int64_t test_examples() const final { return options_.test_size; }
  std::vector<int64_t> test_lengths(int64_t number, int64_t max_tokens) const final;
  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const final;
  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const final;
  std::vector<KeySwap> key_swaps(int64_t count) const final;
  std::vector<int64_t> answers(Module& model, const Tensor& ids, std::span<const int32_t> rows,
                               const ForwardContext& context) const final;

 protected:
  /// The splits of the data; their numbers are part of the random streams.
  enum class Split : uint64_t { training, validation, test };

  /// `defaults`: values of the common settings.
  explicit SyntheticTask(const SyntheticOptions& defaults) : options_(defaults) {}

  /// Settings of a subclass in the group "data".
  virtual void more_fields(Fields&) {}
  /// A usage error where settings do not go together.
  virtual void check_more() const = 0;
  /// Called by load() once `seed_` is set.
  virtual void prepare() {}
  /// What the sequences are, for the log: "4 keys with their values".
  virtual std::string description() const = 0;
  /// A sequence of `length` as data.length counts; `rng` is that of its split and number.
  virtual ScoredSequence sequence(Split split, int64_t length, CounterRng rng) const = 0;
  /// Number of scored places of each training sequence.
  virtual int64_t training_targets() const = 0;
  /// True for tokens that can be the answer of a test sequence.
  virtual bool is_answer(int64_t token) const = 0;
  /// How attention maps call a token. The default is its number.
  virtual std::string token_name(int64_t token) const;
  /// Whether each value stands behind a key of one token, where sequences hold keys and values.
  virtual bool values_behind_keys() const { return true; }
  virtual AccuracyKind accuracy_kind() const { return AccuracyKind::places; }  ///< how accuracy is averaged
  /// The largest length that the task asks a model for.
  virtual int64_t max_length() const { return options_.length; }

  /// A batch of the sequences with these numbers: ids i32 [B, T], targets i32 [n] of the scored places, and
  /// these places as rows b T + t, i32 [n], ascending. `length` as in sequence(); 0: data.length.
  Batch sequences(Split split, std::span<const int64_t> numbers, int64_t length = 0) const;
  /// Scores the first `count` sequences of a split, in batches of train.batch_size.
  AnswerTally score(Module& model, Split split, int64_t count, int64_t length = 0) const;

  SyntheticOptions options_;  ///< as the config sets them
  uint64_t seed_ = 1;         ///< seed of the run

 private:
  /// The training sequences of a batch of the planned epoch.
  std::vector<int64_t> numbers_of(int64_t position) const;
  CounterRng rng_of(Split split, int64_t number) const;
  ExampleTokens tokens_of(int64_t number) const;

  int64_t batch_size_ = 1, epoch_ = 0;
  double label_smoothing_ = 0;
  std::vector<int64_t> order_;  // numbers of the planned epoch's sequences; empty: each batch has new ones
};

}  // namespace heed
