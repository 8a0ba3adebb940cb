// A Chrome trace of some training steps, for chrome://tracing or Perfetto.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/core/timeline.h"
#include "heed/train/loop/train_callback.h"

namespace heed {

/// Records steps of a session and writes them as a file of JSON trace events: durations of steps, modules,
/// ops, gradients and threads, and the bytes that tensors hold. Times are those of the host: on a GPU, of
/// launching kernels. Recorded steps run op by op.
class StepTrace final : public TrainCallback {
 public:
  /// Records `steps` steps, beginning with step number `first` of the session, counted from 1; the first step
  /// of a session takes longer than others. The file is written after the last of them, or by finish().
  explicit StepTrace(Path file, int64_t first = 2, int64_t steps = 3)
      : file_(std::move(file)), first_(first), steps_(steps) {}

  bool inside_steps() const override { return !done_; }
  /// Begins to record at step `first`.
  void before_step(const TrainContext& context, StepBatches& batches) override;
  void after_backward(const TrainContext& context) override;
  /// Ends the record of a step, and writes the file after the last one.
  void after_step(const TrainContext& context, const StepResult& result) override;

  /// Called after the last step of the session: writes the file if fewer than `steps` steps were recorded,
  /// and describes it. A file that cannot be written is reported here and by failure(): the run goes on.
  std::string finish(Module& model);
  /// Why the file could not be written; empty where it was written, or is not due yet.
  const std::string& failure() const { return failure_; }

 private:
  void write(Module& model);

  Path file_;
  int64_t first_, steps_;
  int64_t taken_ = 0, recorded_ = 0;         // number of steps of the session
  int64_t step_began_ = 0, part_began_ = 0;  // times of the present step and of its present part
  bool done_ = false;                        // whether the file was written, or failed to be
  std::vector<TimelineEvent> events_;        // events of the recorded steps
  int64_t dropped_ = 0;                      // number of events that found no place
  std::string failure_;
  std::unique_ptr<Timeline> timeline_;  // records the present step; null: it is not recorded
};

/// Events as the text of a JSON trace. Modules have their names in `model`.
std::string chrome_trace(const std::vector<TimelineEvent>& events, Module& model);

}  // namespace heed
