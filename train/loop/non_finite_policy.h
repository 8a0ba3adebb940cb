// Skips a step whose loss or gradient is NaN or infinite, or stops the run (train.on_nan). find_non_finite.h
// finds the value.
#pragma once

#include <string>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/nn/module.h"
#include "heed/train/loop/checkpoint_manager.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/progress/progress.h"

namespace heed {

/// Decides what happens at a step that is not finite, by train.on_nan. Where steps may be skipped, it copies
/// the buffers before each step, since computing a step changes them; the optimizer itself does not change
/// parameters at such a step.
class NonFinitePolicy {
 public:
  /// All arguments must outlive this object. `checkpoints` gives the last good checkpoint, which errors name.
  NonFinitePolicy(const TrainOptions& options, Module& model, const Optimizer& optimizer, ProcessGroup& group,
                  RunState& state, StepLog& log, Progress& progress, const CheckpointManager& checkpoints);

  /// Copies the buffers before a step.
  void keep_buffers();
  /// Restores the buffers from before the step.
  void restore_buffers();
  /// Records a step whose numbers were finite.
  void passed() { state_.skipped_in_a_row = 0; }
  /// Records a step that was not finite in some process of the group, and whose update was skipped. `bad`
  /// describes the value that this process found. Counts and reports the step, or throws (Fault::numeric)
  /// where the run must stop.
  void failed(const StepResult& step, const std::string& bad);

 private:
  void skip_or_stop(const StepResult& step, const std::string& bad);

  /// A buffer before a step. A step may write into its tensor, or assign another tensor.
  struct SavedBuffer {
    Tensor* buffer;  // the buffer of the module
    Tensor before;   // its tensor before the step
    Tensor values;   // a copy of the values of `before`
  };

  const TrainOptions& options_;
  Module& model_;
  const Optimizer& optimizer_;
  ProcessGroup& group_;
  RunState& state_;
  StepLog& log_;
  Progress& progress_;
  const CheckpointManager& checkpoints_;
  std::vector<SavedBuffer> saved_;
};

}  // namespace heed
