// The forward and backward passes of one step.
#pragma once

#include <memory>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/train/loop/step_batches.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/progress/progress.h"

namespace heed {

/// Runs the batches of a step one after the other and sums their gradients in the optimizer's arena (gradient
/// accumulation): the loss of the step is the mean over the weight of all batches. This class computes all of
/// a step in one process; DataParallel shares the step among several.
class ForwardBackward {
 public:
  /// All arguments must outlive this object; `model` gets gradients, `rng` draws the dropout.
  ForwardBackward(Config& config, Module& model, Rng& rng, const TrainCallbacks& callbacks)
      : config_(config), model_(model), rng_(rng), callbacks_(callbacks) {}
  virtual ~ForwardBackward() = default;
  ForwardBackward(const ForwardBackward&) = delete;
  ForwardBackward& operator=(const ForwardBackward&) = delete;

  /// Prepares the first step of a session.
  virtual void synchronize() {}
  /// Prepares a step whose batches are held, and which may be replayed: writes to the device what the step
  /// reads besides the batches.
  virtual void begin(StepBatches&) {}
  /// Runs forward and backward; returns the losses, for loss_of(). `first`: the first step also checks that
  /// the loss depends on listed parameters alone.
  virtual std::vector<Tensor> run(const TrainContext& context, StepBatches& batches, bool first);
  /// Runs forward and backward again in this process alone, to inspect the step.
  virtual void rerun(const TrainContext& context, StepBatches& batches) { run(context, batches, false); }
  /// Ends the step after run() has thrown in this process, so that other processes do not wait for gradients.
  virtual void abandon() {}
  /// The loss of the step: the weighted mean of the losses that run() returned.
  virtual double loss_of(const StepBatches& batches, const std::vector<double>& losses) const;
  /// Copies the buffers of the main process to all others, after the update.
  virtual void share_buffers() {}

 protected:
  /// Skips the generator to the draws of this batch. The 2^24 draws of a step are divided among its batches,
  /// so a process that has no rows of one batch still draws what the others draw in the next.
  void begin_draws(int64_t batch, int64_t batches);

  Config& config_;                   ///< settings and task of the run
  Module& model_;                    ///< has the weights
  Rng& rng_;                         ///< random numbers of dropout and sampling
  const TrainCallbacks& callbacks_;  ///< called when gradients are complete
};

/// A ForwardBackward for a process alone, a DataParallel for a group. `progress` shows how gradients are
/// sent.
std::unique_ptr<ForwardBackward> make_forward_backward(Config& config, Module& model, Optimizer& optimizer,
                                                       Rng& rng, ProcessGroup& group,
                                                       const TrainCallbacks& callbacks, Progress& progress);

}  // namespace heed
