// A Chrome trace of some training steps, for chrome://tracing or Perfetto.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/core/timeline.h"
#include "heed/train/loop/train_callback.h"

namespace heed {

/// Records steps of a session and writes them as a file of JSON trace events: slices of steps, modules, ops,
/// gradients and threads, and the bytes that tensors hold. Times are those of the host; on a GPU they are of
/// launching. Recorded steps run op by op.
class StepTrace final : public TrainCallback {
 public:
  /// Records `steps` steps from the session's step number `first` on, counted from 1: the first step of a
  /// session takes longer than others. The file is written when they are done, or by finish().
  explicit StepTrace(Path file, int64_t first = 2, int64_t steps = 3)
      : file_(std::move(file)), first_(first), steps_(steps) {}

  bool inside_steps() const override { return !done_; }
  /// Starts the trace at the first recorded step.
  void before_step(const TrainContext& context, StepBatches& batches) override;
  void after_backward(const TrainContext& context) override;
  /// Ends it at the last one, and writes the file.
  void after_step(const TrainContext& context, const StepResult& result) override;

  /// Called after the last step: writes what a shorter session has recorded, and describes the file. A file
  /// that cannot be written is reported here and by failure(): it does not end the run.
  std::string finish(Module& model);
  /// Why the file could not be written; empty where it was, or is not yet.
  const std::string& failure() const { return failure_; }

 private:
  void write(Module& model);

  Path file_;
  int64_t first_, steps_;
  int64_t taken_ = 0, recorded_ = 0;
  int64_t step_began_ = 0, part_began_ = 0;
  bool done_ = false;
  std::vector<TimelineEvent> events_;  // events of the recorded steps
  int64_t dropped_ = 0;
  std::string failure_;
  std::unique_ptr<Timeline> timeline_;  // records the present step; null: it is not recorded
};

/// Events as the text of a JSON trace. Modules have their names in `model`.
std::string chrome_trace(const std::vector<TimelineEvent>& events, Module& model);

}  // namespace heed
