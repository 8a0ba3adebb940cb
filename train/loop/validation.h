// Scores on the validation split while a run trains.
#pragma once

#include "heed/core/distributed/process_group.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Scores a model, and counts what that takes. In a group the main process scores, and all get its numbers.
class Validation {
 public:
  /// The task of `config` scores the model; everything must outlive it.
  Validation(const Config& config, Module& model, ProcessGroup& group)
      : config_(config), model_(model), group_(group) {}

  Scores run();  ///< scores without dropout and tape; all processes of the group call it
  int64_t count() const { return count_; }               ///< of this session
  double seconds() const { return seconds_; }            ///< of all of them
  double last_seconds() const { return last_seconds_; }  ///< of the last one

 private:
  const Config& config_;
  Module& model_;
  ProcessGroup& group_;
  int64_t count_ = 0;
  double seconds_ = 0, last_seconds_ = 0;
};

/// The scores of the main process, for everybody.
Scores broadcast(ProcessGroup& group, const Scores& scores);

}  // namespace heed
