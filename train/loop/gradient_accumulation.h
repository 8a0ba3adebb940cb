// The batches whose gradients make one step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heed/train/tasks/task.h"

namespace heed {

class Prefetch;

/// The batches of one step. Held, all of them are there, as a recorded step and one made ahead need them.
/// Otherwise each is made when it is asked for, so that memory holds one of them however many make a step:
/// what is known of all before the first is what they weigh.
class StepBatches {
 public:
  StepBatches() = default;
  /// Batches that are in memory already.
  explicit StepBatches(std::vector<Batch> held) : held_(std::move(held)), is_held_(true) {}
  /// Those that `ahead` gave last: on the CPU, until to_device() or copy_to() bring them over.
  explicit StepBatches(Prefetch& ahead);
  /// `make` gives batch number i, as often as it is asked for. It must weigh weights[i].
  StepBatches(std::vector<double> weights, std::function<Batch(int64_t)> make);

  /// Batches of the step.
  int64_t count() const { return static_cast<int64_t>(is_held_ ? held_.size() : weights_.size()); }
  bool is_held() const { return is_held_; }  ///< true where all batches are in memory at once
  /// All of them; only where they are held.
  std::vector<Batch>& all();
  /// Batch number i. Where they are not held, it is made.
  Batch at(int64_t i);
  /// What all rows of batch number i weigh, those of other processes included.
  double weight(int64_t i) const;
  /// The sum of all weights, in their order.
  double weight() const;
  /// Tokens of all batches that were asked for so far; where they are held, of all.
  int64_t tokens() const;
  /// Has batches that were made ahead as new tensors of the device.
  void to_device();
  /// Copies what is held into the tensors of `to`, which have the same shapes.
  void copy_to(StepBatches& to);
  /// Changes the first batch, now or whenever it is made.
  void change_first(std::function<void(Batch&)> change);

 private:
  std::vector<Batch> held_;
  bool is_held_ = false;
  Prefetch* arriving_ = nullptr;  // has what is held, until it is on the device
  std::vector<double> weights_;
  std::vector<int64_t> tokens_;
  std::function<Batch(int64_t)> make_;
  std::function<void(Batch&)> change_first_;
};

/// Whether all batches of a step are held: where there is one, and on a device, which records steps, as long
/// as they are few.
bool holds_batches(const TrainOptions& options);

}  // namespace heed
