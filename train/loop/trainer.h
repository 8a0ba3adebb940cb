// The training loop: from a config to a trained model in a run folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/autograd/autocast.h"
#include "heed/core/distributed/single_process.h"
#include "heed/train/config/config.h"
#include "heed/train/loop/batch_stream.h"
#include "heed/train/loop/checkpoint_manager.h"
#include "heed/train/loop/early_stopping.h"
#include "heed/train/loop/memory_estimate.h"
#include "heed/train/loop/non_finite_guard.h"
#include "heed/train/loop/progress.h"
#include "heed/train/loop/step_log.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/loop/train_step.h"
#include "heed/train/loop/validation.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// How a run ended.
struct TrainResult {
  int64_t step = 0;               ///< steps taken, over all sessions
  int64_t best_step = 0;          ///< the step of `best`; 0: no validation
  Scores best;                    ///< scores of the best validation
  double step_seconds = 0;        ///< of the steps of this session alone
  int64_t steps_taken = 0;        ///< in this session
  double validation_seconds = 0;  ///< of the validations of this session
  int64_t validations = 0;        ///< in this session
  double seconds = 0;             ///< of training, validations included, over all sittings
  int stopped_by = 0;             ///< a signal's number, or 0
  int64_t skipped = 0;            ///< steps left out because their numbers were not finite
  int64_t replayed = 0;           ///< of this session: steps done again as a recorded piece
  bool early = false;             ///< patience or the time limit ended it
  /// False where a signal ended the run before its last step.
  bool finished() const { return stopped_by == 0; }
};

/// Trains one run. Every step is a function of (config, step), so a resumed run is bit-identical to an
/// uninterrupted one. The processes of a group take a step together: each computes its shard of every batch,
/// the gradients are summed, and all update their own copy of the weights alike. Only the main one scores and
/// writes into the folder.
class Trainer {
 public:
  /// The task is loaded, the folder locked. `resume` holds the checkpoint to go on from. The processes of a
  /// group hold the same config and checkpoint. Callbacks must outlive the trainer.
  Trainer(Config& config, RunFolder& folder, const std::optional<Checkpoint>& resume, Progress& progress,
          ProcessGroup& group = single_process(), std::vector<TrainCallback*> callbacks = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains to the end, a signal, or a limit; saves on the way and at the end. To be called once.
  TrainResult run();
  Module& model() { return *model_; }  ///< with the weights of the last step
  /// What the whole run is expected to take.
  const Estimate& estimate() const { return estimate_; }
  /// What the steps and validations left, and the test, are expected to take.
  Estimate estimate_of_rest() const { return rest_of(estimate_, total_, state_.step, validate_every_); }
  int64_t total_steps() const { return total_; }  ///< steps that the config asks for
  int64_t step() const { return state_.step; }    ///< steps taken so far, over all sessions
  /// Have as many validations passed without a better one as train.patience allows? Then run() takes no step.
  bool patience_exhausted() const { return stopping_.patience_exhausted(); }

 private:
  TrainResult train();
  StepResult take_step();
  /// Whether the present step is one with a validation.
  bool validation_due() const;
  /// Scores the model, and logs that.
  Scores validate();
  /// The same, as one of the run's validations: the best is kept, and patience counts.
  void evaluate();
  /// Writes the checkpoint of the present step, unless there is one.
  void save();
  /// Where the time limit ended the session. A clock decided where this is, so the run that goes on knows
  /// nothing of it: the checkpoint is saved, and the next session drops the rest.
  void evaluate_late(TrainResult& result);
  /// What run() gives, after the last step of the session.
  TrainResult result() const;

  Config& config_;
  Progress& progress_;
  ProcessGroup& group_;
  TrainCallbacks callbacks_;
  Autocast autocast_;  // of training and validation
  RunState state_;     // which every part keeps up to date, and checkpoints hold
  StepLog log_;
  Rng rng_;
  std::unique_ptr<Module> model_;
  std::unique_ptr<Optimizer> optimizer_;
  int64_t total_;
  int64_t validate_every_;  // steps
  Estimate estimate_;
  CheckpointManager checkpoints_;
  BatchStream batches_;
  NonFiniteGuard guard_;
  TrainStep step_;
  Validation validation_;
  EarlyStopping stopping_;
  double step_seconds_ = 0;
};

}  // namespace heed
