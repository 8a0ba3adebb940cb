// Counts how often a model gives the right token at the places that are scored.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/train/metrics/scores.h"

namespace heed {

/// How an accuracy is averaged.
enum class AccuracyKind {
  /// The share of all scored places at which the likeliest token is right.
  places,
  /// MAD's (mad/metrics.py and mad/model/pl_model_wrapper.py): for each token that is a target or a
  /// prediction
  /// of a batch, the share of its places in the batch that are right, 0 where it is no target; the mean over
  /// these tokens, and then over batches, weighted by their sequences.
  tokens_of_batches,
};

/// Sums the loss and the right predictions over batches.
class AnswerTally {
 public:
  /// `vocabulary`: number of tokens that a model can predict.
  AnswerTally(AccuracyKind kind, int64_t vocabulary) : kind_(kind), vocabulary_(vocabulary) {}

  /// Adds a batch of `sequences` sequences: logits [n, V] at its scored places, and their targets i32 [n].
  void add(const Tensor& logits, const Tensor& targets, int64_t sequences);

  /// accuracy, which chooses the best checkpoint; of AccuracyKind::tokens_of_batches also micro_accuracy,
  /// that of all places; loss, in nats a place.
  Scores scores() const;

 private:
  AccuracyKind kind_;
  int64_t vocabulary_;
  double places_ = 0, right_ = 0, loss_ = 0, sequences_ = 0;
  double sum_of_batches_ = 0;  // accuracy of each batch times its sequences
};

}  // namespace heed
