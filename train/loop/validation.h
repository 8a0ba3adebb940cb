// Scores a model on the validation split while a run trains.
#pragma once

#include "heed/core/distributed/process_group.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Scores a model and measures how long that takes. In a group the main process scores for all.
class Validation {
 public:
  /// The task of `config` scores the model. All arguments must outlive this object.
  Validation(const Config& config, Module& model, ProcessGroup& group)
      : config_(config), model_(model), group_(group) {}

  Scores run();  ///< scores without dropout or gradients; collective: all processes of the group call it
  int64_t count() const { return count_; }               ///< number of validations of this session
  double seconds() const { return seconds_; }            ///< seconds of all validations
  double last_seconds() const { return last_seconds_; }  ///< seconds of the last validation

 private:
  const Config& config_;
  Module& model_;
  ProcessGroup& group_;
  int64_t count_ = 0;
  double seconds_ = 0, last_seconds_ = 0;
};

}  // namespace heed
