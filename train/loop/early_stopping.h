// Ends a run before its last step: patience is exhausted, or time is up.
#pragma once

#include "heed/train/config/config.h"
#include "heed/train/run/run_state.h"

namespace heed {

/// Ends a run by patience, which counts validations without a better one, or by a time limit.
class EarlyStopping {
 public:
  /// For a run of `total` steps. Keeps the best scores in `state`, which checkpoints hold.
  EarlyStopping(const TrainOptions& options, int64_t total, RunState& state)
      : options_(options), total_(total), state_(state) {}

  /// Takes the scores of a validation at the present step: they become the best scores, or count as a
  /// validation without an improvement. Scores before the fraction train.best_after of the steps are ignored,
  /// except those of the last step.
  void update_best(const Scores& scores);
  /// Whether as many validations in a row brought no improvement as train.patience allows.
  bool patience_exhausted() const;
  /// Whether `seconds` of training use up train.time_limit.
  bool out_of_time(double seconds) const;

 private:
  const TrainOptions& options_;
  int64_t total_;
  RunState& state_;
};

}  // namespace heed
