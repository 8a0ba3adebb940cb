// When a run ends before its last step, or saves out of turn.
#pragma once

#include "heed/core/distributed/process_group.h"
#include "heed/train/run/run_state.h"

namespace heed {

/// Ends a run by patience, which counts validations without a better one, or by a time limit.
class EarlyStopping {
 public:
  /// Of a run of `total` steps. Keeps the best scores in `state`, which checkpoints hold.
  EarlyStopping(const TrainOptions& options, int64_t total, RunState& state)
      : options_(options), total_(total), state_(state) {}

  /// Takes the scores of a validation at this step: the best of the run so far, or one more without a better.
  /// None counts before the share train.best_after of the steps; the last step always does.
  void update_best(const Scores& scores);
  /// Have as many validations passed without a better one as train.patience allows?
  bool patience_exhausted() const;
  /// Have so many seconds of training used up train.time_limit?
  bool out_of_time(double seconds) const;

 private:
  const TrainOptions& options_;
  int64_t total_;
  RunState& state_;
};

/// What a run is asked to do between two steps. All processes of a group agree on it.
struct StopRequest {
  int signal = 0;            ///< to save and stop, by this one; 0: none
  bool out_of_time = false;  ///< as the main process measures it
  bool save = false;         ///< to save and go on
};

/// Collects the signals that came to any process since it was asked last, and whether the main one is out of
/// time.
StopRequest collect_stop_request(ProcessGroup& group, bool out_of_time);

}  // namespace heed
