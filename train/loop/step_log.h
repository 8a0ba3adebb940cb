// Logs the steps of a session: lines of metrics for the run folder, and the line of progress.
#pragma once

#include <memory>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/metrics_log.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/run/run_state.h"

namespace heed {

/// Logs one line of metrics for each window of steps, with the mean loss of the window; shows every step on
/// the line of progress; counts the seconds of training. Only the main process of a group writes metrics.
class StepLog {
 public:
  /// Writes metrics into `folder`. All arguments must outlive this object.
  StepLog(const RunFolder& folder, const ProcessGroup& group, Progress& progress, RunState& state);

  /// Expected time of a session besides its steps, for the remaining time.
  struct EvaluationTimes {
    int64_t validate_every = 0;     ///< steps from one validation to the next; 0: none
    double validation_seconds = 0;  ///< seconds of one validation
    double test_seconds = 0;        ///< seconds of the work after the last step
  };
  /// Begins a session that ends after step `total`.
  void begin(int64_t total, const EvaluationTimes& evaluation);
  /// Logs the result of step number state.step.
  void step(const StepResult& result);
  /// Logs the scores of a validation at the present step. Its `seconds` are left out of the speed.
  void validation(const Scores& scores, double seconds);
  /// Calls work(), such as the writing of a checkpoint, and leaves its seconds out of the speed.
  template <class Work>
  void outside_steps(const Work& work) {
    const double began = seconds_now();
    work();
    window_start_ += seconds_now() - began;
  }
  /// Shows the present state on the line of progress.
  void show() { progress_.step(now_); }

  /// Logs numbers of the present step.
  void log(const std::vector<Scalar>& numbers);
  /// Flushes what was logged to disk.
  void sync();
  /// Removes lines of later steps from the log: see MetricsLog.
  void truncate();

  /// Seconds of training, over all sessions, until now.
  double seconds() const;
  /// The step that the session began at.
  int64_t first_step() const { return first_step_; }

 private:
  /// Expected seconds until the end of the run.
  double seconds_left(double now) const;
  Progress& progress_;
  RunState& state_;
  std::unique_ptr<MetricsLog> metrics_;  // log of the main process; null in others
  int64_t total_ = 0, first_step_ = 0, log_every_ = 1;
  EvaluationTimes evaluation_ = {};
  double began_ = 0, earlier_seconds_ = 0;          // start of this session, and seconds of previous sessions
  double validation_seconds_ = 0;                   // seconds of this session's validations
  double window_start_ = 0;                         // the time of the last line of metrics
  double window_tokens_ = 0, window_examples_ = 0;  // numbers of tokens and rows since then
  Progress::Now now_ = {};                          // numbers of the line of progress
};

}  // namespace heed
