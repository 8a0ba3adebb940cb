// Test examples one by one: the names of their tokens, and how well a model does on each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/data/batching/batch.h"

namespace heed {

/// The tokens of one sequence of a batch, as attention maps name them.
struct ExampleTokens {
  int64_t number = 0;                    ///< of the test example, from 0; both inputs of a pair have the same
  std::string caption{};                 ///< one line about the example
  std::vector<std::string> input{};      ///< what the encoder, or the only stack, reads
  std::vector<std::string> target_in{};  ///< what a decoder reads; empty without one
  std::vector<std::string> target_out{};  ///< what a decoder predicts from it: as many
};

/// Test examples in one batch.
struct ExampleBatch {
  Batch batch{};                      ///< as Task::loss() takes it
  std::vector<ExampleTokens> rows{};  ///< one for each sequence of the batch, in its order
};

/// How well a model does on one example.
struct ExampleScore {
  double loss = 0;     ///< sum over its targets, in nats
  double targets = 0;  ///< target tokens, or 1 for a class
  double right = 0;    ///< targets to which the model gives the highest probability
};

/// Scores of concatenated examples: logits [N, V], targets i32 [N], of which each example has `counts` many.
/// Further targets, which fill a batch up, do not count.
std::vector<ExampleScore> scores_of_examples(const Tensor& logits, const Tensor& targets,
                                             std::span<const int64_t> counts);

}  // namespace heed
