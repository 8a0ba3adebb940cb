// One training step: forward, backward, update.
#pragma once

#include <memory>
#include <string>

#include "heed/train/loop/forward_backward.h"
#include "heed/train/loop/graph_capture_cache.h"
#include "heed/train/loop/non_finite_guard.h"
#include "heed/train/loop/train_callback.h"

namespace heed {

/// Takes steps: replayed as a CUDA graph where that can be, shared by the processes of a group, guarded
/// against numbers that are not finite. A step is a function of the weights, the batches and its number.
class TrainStep {
 public:
  /// Everything must outlive it; weights and gradients lie in the optimizer's buffers.
  TrainStep(Config& config, Module& model, Optimizer& optimizer, Rng& rng, ProcessGroup& group,
            const RunState& state, NonFiniteGuard& guard, const TrainCallbacks& callbacks,
            Progress& progress);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  /// Before the first step of a session.
  void synchronize() { passes_->synchronize(); }
  /// Takes the step that state.step counts, at this learning rate; `momentum` as in Optimizer::begin_step().
  StepResult run(StepBatches batches, double rate, std::optional<double> momentum);

  /// Steps of this session that were replayed.
  int64_t replayed() const { return captured_.replayed(); }

 private:
  /// Forward, backward and update; numbers_ holds what came of it.
  void compute(StepBatches& batches, double rate, std::optional<double> momentum);
  void forward_backward_update(StepBatches& batches);
  /// After a step that was not finite, computed again with the same random numbers: which value was not.
  std::string find_bad(StepBatches& batches, int64_t tick, int64_t draws);
  TrainContext context() const { return {state_.step, model_, group_}; }

  Config& config_;
  Module& model_;
  Optimizer& optimizer_;
  Rng& rng_;
  ProcessGroup& group_;
  const RunState& state_;
  NonFiniteGuard& guard_;
  const TrainCallbacks& callbacks_;
  Progress& progress_;
  Tensor numbers_;  // of a step, on the device: losses of its batches, squared norm
  // Declared before captured_, so destroyed after it: NCCL waits for every graph that holds its sums.
  std::unique_ptr<ForwardBackward> passes_;
  CapturedStepCache captured_;
  bool is_first_ = true;  // of the session
  bool said_why_not_ = false;
};

}  // namespace heed
