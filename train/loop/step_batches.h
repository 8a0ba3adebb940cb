// The batches whose gradients make one step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

namespace heed {

class Prefetch;

/// The batches of one step. Either all of them are held in memory, which captured and prefetched steps need,
/// or each is made when it is asked for: then memory holds one batch, however many a step has, and only the
/// weights of the batches are known before.
class StepBatches {
 public:
  StepBatches() = default;
  /// Batches that are in memory already.
  explicit StepBatches(std::vector<Batch> held) : held_(std::move(held)), is_held_(true) {}
  /// The current batches of `prefetch`: on the CPU, until to_device() or copy_to() copies them.
  explicit StepBatches(Prefetch& prefetch);
  /// Batches that are not held: make(i) makes batch number i, each time it is asked for. Its weight must be
  /// weights[i].
  StepBatches(std::vector<double> weights, std::function<Batch(int64_t)> make);

  /// Number of batches of the step.
  int64_t count() const { return static_cast<int64_t>(is_held_ ? held_.size() : weights_.size()); }
  bool is_held() const { return is_held_; }  ///< true where all batches are in memory at once
  /// All batches; an error where they are not held.
  std::vector<Batch>& all();
  /// Batch number i; made anew where batches are not held.
  Batch at(int64_t i);
  /// The weight of batch number i, rows of other processes included.
  double weight(int64_t i) const;
  /// The sum of all weights, in their order.
  double weight() const;
  /// Number of tokens of all batches that are held or were made so far.
  int64_t tokens() const;
  /// Number of rows of all batches that are held or were made so far: extents of their first tensors.
  int64_t examples() const;
  /// Copies batches that were made ahead into new tensors of the device.
  void to_device();
  /// Copies the held batches into the tensors of `to`, which have the same shapes.
  void copy_to(StepBatches& target);
  /// Changes the first batch, now or whenever it is made.
  void change_first(std::function<void(Batch&)> change);

 private:
  std::vector<Batch> held_;
  bool is_held_ = false;
  Prefetch* arriving_ = nullptr;  // source of the held batches until they are on the device
  std::vector<double> weights_;
  std::vector<int64_t> tokens_, examples_;
  std::function<Batch(int64_t)> make_;
  std::function<void(Batch&)> change_first_;
};

/// Whether all batches of a step are held in memory: where a step has one batch, and on a GPU, which captures
/// steps, also where it has few.
bool holds_batches(const TrainOptions& options);

}  // namespace heed
