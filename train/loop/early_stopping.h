// Decides whether a run ends before its last step: by patience (train.patience), by a score that it reached
// (train.stop_score) or by time (train.time_limit).
#pragma once

#include "heed/train/config/config.h"
#include "heed/train/run/run_state.h"

namespace heed {

/// Compares each validation with the best one so far, counts validations in a row without improvement, and
/// says when the score is reached and when patience or time is used up.
class EarlyStopping {
 public:
  /// For a run of `total_steps` steps. Keeps the best scores in `state`, which checkpoints hold.
  EarlyStopping(const TrainOptions& options, int64_t total_steps, RunState& state)
      : options_(options), total_steps_(total_steps), state_(state) {}

  /// Records the scores of a validation at the present step: they become the best scores, or count as a
  /// validation without improvement. Scores before the fraction train.best_after of the steps are ignored,
  /// except those of the last step.
  void update_best(const Scores& scores);
  /// Whether as many validations in a row as train.patience allows brought no improvement.
  bool patience_exhausted() const;
  /// Whether the best validation score is as good as train.stop_score.
  bool score_reached() const;
  /// Whether `seconds` of training reach train.time_limit.
  bool out_of_time(double seconds) const;

 private:
  const TrainOptions& options_;
  int64_t total_steps_;
  RunState& state_;
};

}  // namespace heed
