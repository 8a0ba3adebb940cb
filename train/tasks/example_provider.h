// ExampleProvider: the interface of a task that gives test examples by their numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/data/batching/batch.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The tokens of one sequence of a batch, as attention maps name them.
struct ExampleTokens {
  int64_t number = 0;                ///< number of the test example, from 0; equal for both inputs of a pair
  std::string caption{};             ///< one line about the example
  std::vector<std::string> input{};  ///< tokens that the encoder, or the only stack, reads
  std::vector<std::string> target_in{};   ///< tokens that a decoder reads; empty without one
  std::vector<std::string> target_out{};  ///< tokens that a decoder predicts from target_in, one for each
};

/// Test examples in one batch.
struct ExampleBatch {
  Batch batch{};                      ///< the batch that Task::loss() takes
  std::vector<ExampleTokens> rows{};  ///< one for each sequence of the batch, in its order
};

/// How well a model does on one example.
struct ExampleScore {
  double loss = 0;     ///< sum over the example's targets, in nats
  double targets = 0;  ///< target tokens, or 1 for a class
  double right = 0;    ///< targets to which the model gives the highest probability
};

/// Gives test examples one by one, for statistics of attention heads and for ablations: train/inspect/ asks
/// for them. A task that supports these derives from it, too.
class ExampleProvider {
 public:
  virtual ~ExampleProvider() = default;
  /// Number of test examples.
  virtual int64_t test_examples() const = 0;
  /// Lengths of the sequences of a test example. Examples with equal ones make a batch without padding.
  /// max_tokens > 0 cuts inputs to that many tokens.
  virtual std::vector<int64_t> test_lengths(int64_t number, int64_t max_tokens) const = 0;
  /// The test examples with these numbers, from 0, with the names of their tokens.
  virtual ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const = 0;
  /// The score of each example of a batch that test_batch() made. No gradient is recorded.
  virtual std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                                   const ForwardContext& context) const = 0;
  /// The texts that the model writes for test examples, with their references; empty, the default, for tasks
  /// without texts. `editor` edits heads in each step; null: none.
  virtual std::vector<ReportSample> test_outputs(Module& model, std::span<const int64_t> numbers,
                                                 const DecodeOptions& decode, HeadEditor* editor) const;
};

/// Casts the task to its ExampleProvider. A usage error where the task is none.
const ExampleProvider& example_provider(const Task& task);
/// Number of test examples that the task gives by number; 0 where it is no ExampleProvider.
int64_t num_test_examples(const Task& task);

/// Scores of concatenated examples: logits [N, V], targets i32 [N], of which each example has `counts` many.
/// Further targets, which fill a batch up, do not count.
std::vector<ExampleScore> scores_of_examples(const Tensor& logits, const Tensor& targets,
                                             std::span<const int64_t> counts);

}  // namespace heed
