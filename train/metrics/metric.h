// Metrics of models by batches: accuracy, mean loss, perplexity, and the interface for one's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/data/batching/batch.h"

namespace heed {

/// The result of a loss function: the loss, and tensors that metrics need.
struct LossOutput {
  Tensor loss;          ///< rank 0: the mean over the batch
  Tensor logits = {};   ///< [..., classes]; may be empty
  Tensor targets = {};  ///< i32 [...]; may be empty
  double weight = 0;  ///< number of items that the loss averages over, such as tokens; 0: the batch's weight
};

/// A number that is computed from the outputs of a model, batch after batch. Derive from it for your own.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Its name in logs: valid_NAME in metrics.jsonl.
  virtual std::string name() const = 0;
  virtual bool lower_is_better() const = 0;  ///< decides which of two checkpoints is better
  /// Forgets all batches.
  virtual void reset() = 0;
  /// Takes one batch.
  virtual void add(const LossOutput& output, const Batch& batch) = 0;
  /// The value over all batches since reset(); NaN when there were none.
  virtual double value() const = 0;
};

/// The share of targets whose logit is the largest, 0 to 1; targets equal to `ignore` do not count. Of equal
/// logits the first counts. Needs LossOutput::logits and targets.
std::shared_ptr<Metric> accuracy(int32_t ignore = -1);
/// Mean loss, weighted by each batch's weight.
std::shared_ptr<Metric> mean_loss();
/// e to the power of mean_loss(), for language models: the loss must be in nats a token.
std::shared_ptr<Metric> perplexity();

}  // namespace heed
