// Base of tasks that classify numbered examples with one encoder, and what other classifying tasks share.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/train/config/config.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {

/// Sums the loss and the correct predictions of a classifier over batches.
class ClassificationTally {
 public:
  /// With `classes` above 0 it also counts predictions by true class.
  explicit ClassificationTally(int64_t classes = 0) : confusion_(static_cast<size_t>(classes * classes)) {}

  /// Adds a batch: logits [n, C], targets i32 [n], and the weight of the batch's mean loss.
  void add(const Tensor& logits, const Tensor& targets, double weight);

  double weight() const { return weight_; }  ///< sum of the batches' weights
  double accuracy() const;                   ///< share of correct predictions
  double loss() const;                       ///< mean loss, weighted by the weights
  const std::vector<int64_t>& confusion() const { return confusion_; }  ///< [true class, predicted class]
  Scores scores() const;  ///< accuracy, which chooses the best checkpoint, and loss

 private:
  double weight_ = 0, loss_ = 0;
  int64_t correct_ = 0;
  std::vector<int64_t> confusion_;
};

/// A usage error unless train.batch_size is 1 to `max_batch`. `counted` is what a batch holds: "images".
void check_batch_size(const Config& config, const char* counted, int64_t max_batch = max_integer);

/// The number of a test example that a text gives, 0 to `count` - 1; empty: 0. A usage error for another
/// text, which calls the example `name`: "test image".
int64_t example_number(const std::string& given, int64_t count, const char* name);

/// A task whose model is a Classifier of numbered examples. Subclasses provide the examples; loss, scores,
/// maps and single test examples are here.
class ClassificationTask : public Task, public MapProvider, public ExampleProvider {
 public:
  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) final;
  Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const final;
  Scores validate(Module& model) const final {
    return score(model, Split::validation, num_examples(Split::validation)).scores();
  }
  std::vector<ValidationPart> validation_cost(Module& model) const final;
  std::vector<MapView> maps(Module& model, const std::string& text, std::string& caption) const final {
    return maps_with(model, text, {}, caption);
  }
  std::vector<MapView> maps_with(Module& model, const std::string& text, const MapParts& parts,
                                 std::string& caption) const final;
  int64_t test_examples() const final { return num_examples(Split::test); }
  std::vector<int64_t> test_lengths(int64_t number, int64_t max_tokens) const final;
  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const final;
  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const final;

 protected:
  /// The splits of the data; their numbers are part of the random streams of generated examples.
  enum class Split : uint64_t { training, validation, test };

  /// Keeps the settings that batches and loss depend on; load() of a subclass calls it.
  void set_options(const TrainOptions& train);
  /// Number of examples of a split. Only those of validation and test are asked for.
  virtual int64_t num_examples(Split split) const = 0;
  /// A batch of the examples with these numbers: inputs, and labels i32 [B].
  virtual Batch examples(Split split, std::span<const int64_t> numbers) const = 0;
  /// Caption and token names of a test example.
  virtual ExampleTokens tokens_of(int64_t number) const = 0;
  virtual const char* example_name() const = 0;  ///< what errors call a test example: "test image"
  /// The picture whose patches the tokens of a test example are; null: they are none.
  virtual std::shared_ptr<TokenPicture> picture(int64_t /*number*/) const { return nullptr; }

  /// Evaluates the model on the first `count` examples of a split. With `classes` above 0 it also counts
  /// predictions by true class.
  ClassificationTally score(Module& model, Split split, int64_t count, int64_t classes = 0) const;

  int64_t batch_size_ = 1;      ///< examples a training batch
  uint64_t seed_ = 1;           ///< seed of the run
  double label_smoothing_ = 0;  ///< label smoothing of the training loss
};

}  // namespace heed
