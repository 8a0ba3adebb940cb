// What a run does at a step whose loss or gradient is NaN or infinite: skips it, or stops. Where the value
// came from is found by non_finite_search.h.
#pragma once

#include <string>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/nn/module.h"
#include "heed/train/loop/checkpoint_manager.h"
#include "heed/train/loop/progress.h"
#include "heed/train/loop/train_callback.h"

namespace heed {

/// Guards a run against NaN and infinity, by train.on_nan. Where steps may be skipped it keeps a copy of the
/// buffers before each, since computing a step changes them; parameters the optimizer leaves alone by itself.
class NonFiniteGuard {
 public:
  /// Everything must outlive it; `checkpoints` are named when the run stops.
  NonFiniteGuard(const TrainOptions& options, Module& model, const Optimizer& optimizer, ProcessGroup& group,
                 RunState& state, StepLog& log, Progress& progress, const CheckpointManager& checkpoints);

  /// Before a step that may turn out to be bad.
  void keep_buffers();
  /// Puts buffers back to where they were before the step.
  void restore_buffers();
  /// A step was fine.
  void passed() { state_.skipped_in_a_row = 0; }
  /// A step was not, in some process of the group; its update was left out. `bad` says what this process
  /// found. Counts and reports the step, or throws (Fault::numeric) where the run is to stop.
  void failed(const StepResult& step, const std::string& bad);

 private:
  void skip_or_stop(const StepResult& step, const std::string& bad);

  /// A buffer as it was before a step: modules write into it, or put another in its place.
  struct KeptBuffer {
    Tensor* place;
    Tensor before, numbers;
  };

  const TrainOptions& options_;
  Module& model_;
  const Optimizer& optimizer_;
  ProcessGroup& group_;
  RunState& state_;
  StepLog& log_;
  Progress& progress_;
  const CheckpointManager& checkpoints_;
  std::vector<KeptBuffer> kept_;
};

}  // namespace heed
