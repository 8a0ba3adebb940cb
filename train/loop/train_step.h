// One training step: forward, backward, update.
#pragma once

#include <memory>
#include <string>

#include "heed/train/loop/forward_backward.h"
#include "heed/train/loop/graph_capture.h"
#include "heed/train/loop/non_finite_policy.h"
#include "heed/train/loop/train_callback.h"

namespace heed {

/// Runs steps: replays them as a CUDA graph where possible, shares them among the processes of a group, and
/// checks them for numbers that are not finite. A step depends on weights, batches and its number alone.
class TrainStep {
 public:
  /// All arguments must outlive this object. Weights and gradients lie in the optimizer's buffers.
  TrainStep(Config& config, Module& model, Optimizer& optimizer, Rng& rng, ProcessGroup& group,
            const RunState& state, NonFinitePolicy& non_finite, const TrainCallbacks& callbacks,
            Progress& progress);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  /// Prepares the first step of a session.
  void synchronize() { passes_->synchronize(); }
  /// Runs step number state.step with this learning rate; `momentum` is that of Optimizer::begin_step().
  StepResult run(StepBatches batches, double rate, std::optional<double> momentum);

  /// Number of steps of this session that were replayed.
  int64_t replayed() const { return captured_.replayed(); }

 private:
  /// Forward, backward and update, which leave the losses and the squared gradient norm in numbers_.
  void compute(StepBatches& batches, double rate, std::optional<double> momentum);
  /// The part of a step that a CUDA graph can replay.
  void forward_backward_update(StepBatches& batches);
  /// Computes a step that was not finite again, with the same random numbers, and describes the first value
  /// that is not finite.
  std::string find_bad(StepBatches& batches, int64_t tick, int64_t draws);
  TrainContext context() const { return {state_.step, model_, group_}; }

  Config& config_;
  Module& model_;
  Optimizer& optimizer_;
  Rng& rng_;
  ProcessGroup& group_;
  const RunState& state_;
  NonFinitePolicy& non_finite_;
  const TrainCallbacks& callbacks_;
  Progress& progress_;
  Tensor numbers_;  // on the device: losses of a step's batches, then the squared gradient norm
  // Declared before captured_, so destroyed after it: NCCL waits for every graph that holds its sums.
  std::unique_ptr<ForwardBackward> passes_;
  CapturedStepCache captured_;
  bool is_first_ = true;       // whether the next step is the first of the session
  bool said_why_not_ = false;  // whether the reason against replaying was shown
};

}  // namespace heed
