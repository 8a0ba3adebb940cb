// The forward and backward passes of one step.
#pragma once

#include <memory>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/train/loop/gradient_accumulation.h"
#include "heed/train/loop/progress.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/optim/optimizer.h"

namespace heed {

/// Runs the batches of a step one after the other, with their gradients summed in the optimizer's arena
/// (gradient accumulation): the loss of the step is the mean over the weight of all of them. This one is of a
/// process that works alone; DataParallel shares the step among several.
class ForwardBackward {
 public:
  /// Everything must outlive it; `model` gets gradients, `rng` draws the dropout.
  ForwardBackward(Config& config, Module& model, Rng& rng, const TrainCallbacks& callbacks)
      : config_(config), model_(model), rng_(rng), callbacks_(callbacks) {}
  virtual ~ForwardBackward() = default;
  ForwardBackward(const ForwardBackward&) = delete;
  ForwardBackward& operator=(const ForwardBackward&) = delete;

  /// Before the first step of a session.
  virtual void synchronize() {}
  /// Before a step whose batches are held, which may be replayed: writes to the device what it reads besides
  /// them.
  virtual void begin(StepBatches&) {}
  /// Both passes; gives the losses, for loss_of(). `first`: the first step also checks that the loss depends
  /// on listed parameters alone.
  virtual std::vector<Tensor> run(const TrainContext& context, StepBatches& batches, bool first);
  /// The same once more, to look into it: no other process takes part.
  virtual void rerun(const TrainContext& context, StepBatches& batches) { run(context, batches, false); }
  /// run() has thrown here, and other processes wait for its gradients.
  virtual void abandon() {}
  /// The loss of the step, of the numbers in the losses that run() gave.
  virtual double loss_of(const StepBatches& batches, const std::vector<double>& losses) const;
  /// After the update: all processes have the buffers of the main one.
  virtual void share_buffers() {}

 protected:
  /// Each batch of a step draws in a range of its own, of the 2^24 draws of a tick: of several processes, one
  /// without rows of a batch draws nothing there, and must not be behind in the next.
  void begin_draws(int64_t batch, int64_t batches);

  Config& config_;                   ///< settings and task of the run
  Module& model_;                    ///< has the weights
  Rng& rng_;                         ///< of dropout and sampling
  const TrainCallbacks& callbacks_;  ///< told when gradients are complete
};

/// The one for a group of this size. `progress` hears how gradients travel.
std::unique_ptr<ForwardBackward> make_forward_backward(Config& config, Module& model, Optimizer& optimizer,
                                                       Rng& rng, ProcessGroup& group,
                                                       const TrainCallbacks& callbacks, Progress& progress);

}  // namespace heed
