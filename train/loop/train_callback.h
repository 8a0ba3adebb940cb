// Callbacks: functions that users of the library, and tests, add to the training loop.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/nn/module.h"
#include "heed/train/loop/step_batches.h"

namespace heed {

/// The result of one training step.
struct StepResult {
  double loss = 0;       ///< mean over the step's batches, in nats
  double norm = 0;       ///< norm of the gradient, before clipping
  double rate = 0;       ///< learning rate
  double tokens = 0;     ///< number of tokens of its batches, over all processes
  double examples = 0;   ///< number of rows of its batches, over all processes, where they have no tokens
  bool skipped = false;  ///< whether loss or gradient was not finite, so that weights did not change
};

/// The state of the training when a callback is called.
struct TrainContext {
  int64_t step = 0;           ///< number of the step, counted from 1
  Module& model;              ///< the model, with its present weights
  const ProcessGroup& group;  ///< the processes of the run; a group of one without mpirun
};

/// Functions that the loop calls at fixed places; each does nothing unless it is overridden. Every process of
/// a group calls its own. An exception ends the run.
class TrainCallback {
 public:
  virtual ~TrainCallback() = default;
  /// Called before the first step of this session. TrainContext::step is the number of steps taken before, 0
  /// for a new run. Files of later steps are from an earlier session, whose later steps this session
  /// replaces.
  virtual void before_training(const TrainContext&) {}
  /// Whether before_step() and after_backward() are called. Steps then run op by op, since a replayed CUDA
  /// graph calls nothing, and batches are not made ahead.
  virtual bool inside_steps() const { return false; }
  /// Called before the batches of a step are computed.
  virtual void before_step(const TrainContext&, StepBatches&) {}
  /// Called when the gradients of this process's batches are complete.
  virtual void after_backward(const TrainContext&) {}
  /// Called when the weights are updated, or the step was skipped.
  virtual void after_step(const TrainContext&, const StepResult&) {}
  /// Called when the model is scored; the main process alone has computed the scores.
  virtual void after_validation(const TrainContext&, const Scores&) {}
  /// Called when the checkpoint of this step is written.
  virtual void after_save(const TrainContext&) {}
};

/// The name of TrainCallback in programs that use the library.
using Callback = TrainCallback;

/// All callbacks of a run, called in their order. They must outlive it.
class TrainCallbacks {
 public:
  /// The pointers must not be null.
  explicit TrainCallbacks(std::vector<TrainCallback*> all = {}) : all_(std::move(all)) {}

  /// Whether any of them is inside_steps().
  bool inside_steps() const {
    return std::any_of(all_.begin(), all_.end(),
                       [](const TrainCallback* callback) { return callback->inside_steps(); });
  }
  /// Calls a member of each: `callbacks.call(&TrainCallback::after_step, context, result)`.
  template <class... Parameters, class... Arguments>
  void call(void (TrainCallback::*member)(Parameters...), Arguments&&... arguments) const {
    for (TrainCallback* callback : all_) (callback->*member)(arguments...);
  }
  /// Calls a member of each callback that is inside_steps().
  template <class... Parameters, class... Arguments>
  void call_inside(void (TrainCallback::*member)(Parameters...), Arguments&&... arguments) const {
    for (TrainCallback* callback : all_) {
      if (callback->inside_steps()) (callback->*member)(arguments...);
    }
  }

 private:
  std::vector<TrainCallback*> all_;
};

}  // namespace heed
