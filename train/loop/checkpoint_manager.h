// Writes the checkpoints of a run, marks the best, removes old ones, and restores a run from one. The Trainer
// decides when; run/checkpoint_folder.h writes and reads the files.
#pragma once

#include <optional>
#include <string>

#include "heed/core/distributed/process_group.h"
#include "heed/train/config/config.h"
#include "heed/train/loop/step_log.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/run/run_state.h"

namespace heed {

/// A usage error where a model has more tensors than a checkpoint can hold. Called before training, which
/// could not save such a model.
void check_savable(Module& model);

/// Saves the model, the optimizer and the state of a run, and keeps the last train.keep_checkpoints
/// checkpoints and the best one. In a group only the main process writes; all processes call together.
class CheckpointManager {
 public:
  /// Restores model, optimizer, random numbers and state from `resume`, if there is one. Fault::data where it
  /// is not of this run.
  CheckpointManager(Config& config, const RunFolder& folder, Module& model, Optimizer& optimizer, Rng& rng,
                    ProcessGroup& group, RunState& state, StepLog& log,
                    const std::optional<Checkpoint>& resume);

  /// Removes checkpoints and lines of metrics of steps after the present one, from which the run continues.
  void truncate();
  /// Writes the checkpoint of the present step, unless there is no folder. Fault::numeric where the weights
  /// are not finite: they are not saved.
  void save();
  /// Marks the checkpoint of the present step as the best.
  void mark_best();
  /// Fails, as a CollectiveError, where processes hold different weights.
  void check_same_weights() const;

  /// The step of the last checkpoint of this session, or the step that it was restored from; -1: none yet.
  int64_t saved() const { return saved_; }
  /// The sentence that names the last checkpoint, for errors; begins with a blank.
  std::string last_good() const;

 private:
  void restore(const Checkpoint& checkpoint);
  /// Writes the files of a checkpoint in the main process; in all others only checks the weights.
  void write();
  /// Marks the best checkpoint among those that exist: state.best_step, or the present step.
  void update_best();
  void read_state(const Checkpoint& checkpoint);

  Config& config_;
  const RunFolder& folder_;
  Module& model_;
  Optimizer& optimizer_;
  Rng& rng_;
  ProcessGroup& group_;
  RunState& state_;
  StepLog& log_;
  bool noted_ = false;  // whether the manifest says that there is a checkpoint
  int64_t saved_ = -1;  // see saved()
};

}  // namespace heed
