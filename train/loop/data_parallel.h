// One step shared by several processes: each computes its rows of every batch, and gradients are summed.
#pragma once

#include <memory>
#include <vector>

#include "heed/train/distributed/gradient_reducer.h"
#include "heed/train/loop/forward_backward.h"

namespace heed {

/// Forward and backward of this process's shards of the batches; gradients and losses are summed over the
/// group, so that every process then updates its own copy of the weights alike.
class DataParallel final : public ForwardBackward {
 public:
  /// Everything must outlive it; the processes of `group` hold equal weights.
  DataParallel(Config& config, Module& model, Optimizer& optimizer, Rng& rng, ProcessGroup& group,
               const TrainCallbacks& callbacks, Progress& progress);

  void synchronize() override;
  void begin(StepBatches& batches) override;
  std::vector<Tensor> run(const TrainContext& context, StepBatches& batches, bool first) override;
  void rerun(const TrainContext& context, StepBatches& batches) override;
  void abandon() override;
  double loss_of(const StepBatches& batches, const std::vector<double>& losses) const override;
  void share_buffers() override;

 private:
  /// Both passes of the shards; with `reduce`, gradients are sent meanwhile.
  void pass(const TrainContext& context, StepBatches& batches, bool first, bool reduce);
  /// Puts this process's share of the step's weight where the backward pass reads it: of batch number i.
  void write_factor(int64_t i, double part, double whole);

  Optimizer& optimizer_;
  ProcessGroup& group_;
  Progress& progress_;
  std::unique_ptr<GradientReducer> reducer_;
  Tensor factors_, losses_;  // [batches a step]: shares of the step's weight; parts of its loss
};

}  // namespace heed
