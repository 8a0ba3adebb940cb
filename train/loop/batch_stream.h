// The batches of a run, step after step.
#pragma once

#include <memory>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/train/loop/prefetch.h"
#include "heed/train/loop/step_batches.h"
#include "heed/train/run/run_state.h"

namespace heed {

/// Walks through the epochs that the task plans, and gives each step its batches, or in a group of processes
/// this process's shard of each. Batches are made ahead by a thread on a GPU, or one by one where a step has
/// too many to hold.
class BatchStream {
 public:
  /// Continues after the batches that `state` has consumed, and keeps its epoch and position up to date.
  /// `may_prefetch`: whether a thread may make batches ahead.
  BatchStream(Config& config, const ProcessGroup& group, RunState& state, bool may_prefetch = true);

  /// The batches of the next step. At most `steps_left` steps may still be asked for, this one included.
  StepBatches next(int64_t steps_left);
  /// Ends the thread that makes batches ahead; next() starts another.
  void stop() { prefetch_.reset(); }

 private:
  /// The batches of the next step, each made when it is asked for; moves place_ past them.
  StepBatches lazy_batches();
  /// Makes all batches of a step from `place` on, and moves `place` past them.
  std::vector<Batch> make(DataPlace& place) const;
  /// Batch number `position` of the planned epoch, or in a group this process's shard of it.
  Batch batch_at(int64_t position) const;
  /// Lets the task plan this epoch, or keeps the first one with train.overfit_batches; returns its number of
  /// batches.
  int64_t plan(int64_t epoch) const;
  /// Lets the task plan this epoch, unless it is the planned one already.
  void plan_unless_planned(int64_t epoch);

  Config& config_;
  const ProcessGroup& group_;
  RunState& state_;
  bool may_prefetch_;
  const int64_t first_num_batches_;  // number of batches of the first epoch of this stream
  DataPlace place_;                  // position after the batches of the last step
  int64_t planned_epoch_ = -1;       // epoch that the task has planned, where batches are made one by one
  std::unique_ptr<Prefetch> prefetch_;
};

}  // namespace heed
