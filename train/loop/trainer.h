// The training loop: from a config to a trained model in a run folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/autograd/autocast.h"
#include "heed/core/distributed/single_process.h"
#include "heed/train/config/config.h"
#include "heed/train/distributed/stop_agreement.h"
#include "heed/train/loop/batch_stream.h"
#include "heed/train/loop/checkpoint_manager.h"
#include "heed/train/loop/early_stopping.h"
#include "heed/train/loop/non_finite_policy.h"
#include "heed/train/loop/run_estimate.h"
#include "heed/train/loop/step_log.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/loop/train_step.h"
#include "heed/train/loop/validation.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// How a run ended.
struct TrainResult {
  int64_t step = 0;               ///< number of steps taken, over all sessions
  int64_t best_step = 0;          ///< the step of `best`; 0: no validation
  Scores best;                    ///< scores of the best validation
  double step_seconds = 0;        ///< seconds of the steps of this session
  int64_t steps_taken = 0;        ///< number of steps of this session
  double validation_seconds = 0;  ///< seconds of the validations of this session
  int64_t validations = 0;        ///< number of validations of this session
  double seconds = 0;             ///< seconds of training, validations included, over all sessions
  int stopped_by = 0;             ///< number of the signal that ended it, or 0
  int64_t skipped = 0;            ///< number of steps skipped because their numbers were not finite
  int64_t replayed = 0;           ///< number of steps of this session that were replayed as a CUDA graph
  bool early = false;             ///< whether patience, a score or the time limit ended it
  /// False where a signal ended the run before its last step.
  bool finished() const { return stopped_by == 0; }
};

/// Trains one run. Every step is a function of (config, step), so a resumed run is bit-identical to an
/// uninterrupted one. The processes of a group take each step together: each process computes its shard of
/// every batch, the gradients are summed, and each process updates its copy of the weights equally. Only the
/// main process scores the model and writes into the folder.
class Trainer {
 public:
  /// The task must be loaded and the folder locked. `resume` holds the checkpoint to resume from. The
  /// processes of a group hold the same config and checkpoint. Callbacks must outlive the trainer.
  Trainer(Config& config, RunFolder& folder, const std::optional<Checkpoint>& resume, Progress& progress,
          ProcessGroup& group = single_process(), std::vector<TrainCallback*> callbacks = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains until the last step, a signal, or a limit; saves on the way and at the end. To be called once.
  TrainResult run();
  Module& model() { return *model_; }  ///< with the weights of the last step
  /// Expected memory and time of the whole run.
  const Estimate& estimate() const { return estimate_; }
  /// Expected memory and time of the remaining steps and validations, and of the test.
  Estimate estimate_of_rest() const {
    return remaining_estimate(estimate_, total_, state_.step, validate_every_);
  }
  int64_t total_steps() const { return total_; }  ///< number of steps of the whole run
  int64_t step() const { return state_.step; }    ///< number of steps taken so far, over all sessions
  /// Whether as many validations in a row as train.patience allows brought no improvement: no step follows.
  bool patience_exhausted() const { return stopping_.patience_exhausted(); }
  /// Whether the best validation score is as good as train.stop_score: no step follows.
  bool score_reached() const { return stopping_.score_reached(); }
  /// Whether no step follows: all are taken, patience is used up, or the score is reached.
  bool is_complete() const { return step() >= total_steps() || patience_exhausted() || score_reached(); }

 private:
  TrainResult train();
  StepResult take_step();
  /// Whether the present step is followed by a validation.
  bool validation_due() const;
  /// Scores the model on the validation split, and logs the scores.
  Scores validate();
  /// Validates, updates the best scores and counts patience.
  void evaluate();
  /// Writes the checkpoint of the present step, unless there is one.
  void save();
  /// Validates where the time limit ended the session. A resumed run ignores this validation, since its step
  /// depends on a clock: it continues from the checkpoint that was saved before.
  void evaluate_late(TrainResult& result);
  /// The result of run(), after the last step of the session.
  TrainResult result() const;
  /// The request to stop or save after this step on which all processes agree: by signals or time.
  StopRequest stop_request();

  Config& config_;
  Progress& progress_;
  ProcessGroup& group_;
  TrainCallbacks callbacks_;
  Autocast autocast_;  // rounding of products in training and validation
  RunState state_;     // kept up to date by every part, saved in checkpoints
  StepLog log_;
  Rng rng_;
  std::unique_ptr<Module> model_;
  std::unique_ptr<Optimizer> optimizer_;
  int64_t total_;           // number of steps of the run
  int64_t validate_every_;  // number of steps
  Estimate estimate_;
  CheckpointManager checkpoints_;
  BatchStream batches_;
  NonFinitePolicy non_finite_;
  TrainStep step_;
  Validation validation_;
  EarlyStopping stopping_;
  double step_seconds_ = 0;
};

}  // namespace heed
