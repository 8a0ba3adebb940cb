// What users of the library, and tests, may add to the training loop.
#pragma once

#include <utility>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/nn/module.h"
#include "heed/train/loop/gradient_accumulation.h"

namespace heed {

/// What one step gave.
struct StepResult {
  double loss = 0;       ///< mean over the step's batches, in nats
  double norm = 0;       ///< norm of the gradient, before clipping
  double rate = 0;       ///< learning rate
  double tokens = 0;     ///< of all processes
  bool skipped = false;  ///< loss or gradient was not finite, and nothing was changed
};

/// Where a callback is called from.
struct TrainContext {
  int64_t step = 0;           ///< counted from 1, as in the metrics
  Module& model;              ///< with the weights of this step
  const ProcessGroup& group;  ///< the processes of the run; a group of one without mpirun
};

/// Functions that the loop calls at fixed places; each does nothing unless it is overridden. Every process of
/// a group calls its own. What one throws ends the run.
class TrainCallback {
 public:
  virtual ~TrainCallback() = default;
  /// The first step of this session is about to be taken. `step`: how many were taken before, 0 for a new
  /// run; files of later steps are those of a session that this one takes the place of.
  virtual void before_training(const TrainContext&) {}
  /// Whether before_step() and after_backward() are wanted. Steps then run op by op: a replayed CUDA graph
  /// calls nobody, and batches are not made ahead.
  virtual bool inside_steps() const { return false; }
  /// The batches of a step are about to be computed.
  virtual void before_step(const TrainContext&, StepBatches&) {}
  /// The gradients of the step's batches are complete, those of this process.
  virtual void after_backward(const TrainContext&) {}
  /// The weights are updated, unless the step was skipped.
  virtual void after_step(const TrainContext&, const StepResult&) {}
  /// The model is scored; the main process alone has computed the scores.
  virtual void after_validation(const TrainContext&, const Scores&) {}
  /// The checkpoint of this step is written.
  virtual void after_save(const TrainContext&) {}
};

/// The name that programs know it by.
using Callback = TrainCallback;

/// All callbacks of a run, called in their order. They must outlive it.
class TrainCallbacks {
 public:
  /// Null is not allowed.
  explicit TrainCallbacks(std::vector<TrainCallback*> all = {}) : all_(std::move(all)) {}

  /// Whether one of them is inside_steps().
  bool inside_steps() const {
    for (const TrainCallback* one : all_) {
      if (one->inside_steps()) return true;
    }
    return false;
  }
  /// Calls a member of each: `callbacks.call(&TrainCallback::after_step, context, result)`.
  template <class... Parameters, class... Arguments>
  void call(void (TrainCallback::*what)(Parameters...), Arguments&&... arguments) const {
    for (TrainCallback* one : all_) (one->*what)(arguments...);
  }
  /// The same of those that are inside_steps().
  template <class... Parameters, class... Arguments>
  void call_inside(void (TrainCallback::*what)(Parameters...), Arguments&&... arguments) const {
    for (TrainCallback* one : all_) {
      if (one->inside_steps()) (one->*what)(arguments...);
    }
  }

 private:
  std::vector<TrainCallback*> all_;
};

}  // namespace heed
