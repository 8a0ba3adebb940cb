// Data parallelism: each process computes its shard of a batch and sends gradients while the backward pass
// runs.
#include <cmath>

#include "heed/autograd/tape.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/train/distributed/gradient_reducer.h"
#include "heed/train/loop/find_non_finite.h"
#include "heed/train/loop/forward_backward.h"

namespace heed {
namespace {

/// Forward and backward of this process's shards of the batches; gradients and losses are summed over the
/// group, so that every process then updates its own copy of the weights alike.
class DataParallel final : public ForwardBackward {
 public:
  /// All arguments must outlive this object; the processes of `group` hold equal weights.
  DataParallel(Config& config, Module& model, Optimizer& optimizer, Rng& rng, ProcessGroup& group,
               const TrainCallbacks& callbacks, Progress& progress)
      : ForwardBackward(config, model, rng, callbacks),
        optimizer_(optimizer),
        group_(group),
        progress_(progress) {}

  void synchronize() override {
    const Tensor& values = optimizer_.values();
    factors_ = Tensor::zeros(Shape{config_.train.grad_accumulation}, values.dtype(), values.device());
    losses_ = Tensor::zeros(factors_.shape(), values.dtype(), values.device());
    reducer_ = std::make_unique<GradientReducer>(
        optimizer_, make_all_reduce(group_, values.device(),
                                    [this](const std::string& why) { progress_.say("processes", why); }));
  }

  void begin(StepBatches& batches) override {
    const double weight = batches.weight();
    for (int64_t i = 0; i < batches.count(); ++i) write_factor(i, batches.at(i).weight, weight);
  }

  std::vector<Tensor> run(const TrainContext& context, StepBatches& batches, bool first) override {
    reducer_->begin();
    pass(context, batches, first, Send::yes);
    reducer_->finish(losses_);
    return {losses_};
  }

  void rerun(const TrainContext& context, StepBatches& batches) override {
    constexpr bool is_first = false;
    pass(context, batches, is_first, Send::no);
  }

  void abandon() override {
    // The loss tells the other processes that the step failed.
    launch<kernel::Fill>(losses_.device(), losses_, NAN);
    reducer_->finish(losses_);
  }

  double loss_of(const StepBatches&, const std::vector<double>& losses) const override {
    double loss = 0;
    for (const double part : losses) loss += part;
    return loss;
  }

  void share_buffers() override {
    for (const Named& named : buffers(model_)) {  // listed anew each time: a step may replace a buffer
      const Tensor& buffer = *named.tensor;
      const Tensor on_cpu = contiguous(buffer.to(Device::cpu).detach());
      group_.broadcast(on_cpu.raw(), on_cpu.bytes());
      if (on_cpu.storage() != buffer.storage())
        launch<kernel::Copy>(buffer.device(), on_cpu.to(buffer.device()), buffer);
    }
  }

 private:
  /// Whether pass() sends gradients while it computes the last ones.
  enum class Send : bool { no, yes };
  /// Forward and backward of all shards. `is_first`: also checks the parameters.
  void pass(const TrainContext& context, StepBatches& batches, bool is_first, Send send) {
    // A callback may change gradients after the backward pass: then finish() sends them, after the callback.
    const bool sends_early = send == Send::yes && !callbacks_.inside_steps();
    const double weight = batches.weight();
    for (int64_t i = 0; i < batches.count(); ++i) {
      const Tensor loss_of_shard = view::slice(losses_, 0, i, i + 1);
      const Batch batch = batches.at(i);
      // Held batches may belong to a captured step, which reads factors that were written before it.
      if (!batches.is_held()) write_factor(i, batch.weight, weight);
      begin_draws(i, batches.count());
      if (batch.weight == 0) {  // the batch has fewer rows than there are processes
        launch<kernel::Fill>(loss_of_shard.device(), loss_of_shard, 0.0);
        continue;
      }
      const SharedRows rows(batch.rows);
      AuxiliaryLosses auxiliary;
      Tensor loss = config_.task->loss(model_, batch, {.rng = &rng_, .losses = &auxiliary});
      const Tensor factor = view::reshape(view::slice(factors_, 0, i, i + 1), loss.shape());
      launch<kernel::Copy>(loss_of_shard.device(), view::reshape(loss.detach() * factor, Shape{1}),
                           loss_of_shard);
      if (const Tensor auxiliary_loss = auxiliary.sum()) loss = loss + auxiliary_loss;
      if (is_first) check_listed(model_, loss);
      loss = loss * factor;
      if (sends_early && i + 1 == batches.count()) {
        const GradientHooks hooks = reducer_->watch();
        backward(loss);
      } else {
        backward(loss);
      }
    }
    callbacks_.call_inside(&TrainCallback::after_backward, context);
  }

  /// Writes shard_weight / step_weight of batch number i to the device, where the backward pass reads it.
  void write_factor(int64_t i, double shard_weight, double step_weight) {
    launch<kernel::Fill>(factors_.device(), view::slice(factors_, 0, i, i + 1),
                         step_weight > 0 ? shard_weight / step_weight : 0.0);
  }

  Optimizer& optimizer_;
  ProcessGroup& group_;
  Progress& progress_;
  std::unique_ptr<GradientReducer> reducer_;
  Tensor factors_;  // [batches per step]: fraction of the step's weight in this process's shard of each batch
  Tensor losses_;   // [batches per step]: part of the step's loss of each shard
};

}  // namespace

std::unique_ptr<ForwardBackward> make_forward_backward(Config& config, Module& model, Optimizer& optimizer,
                                                       Rng& rng, ProcessGroup& group,
                                                       const TrainCallbacks& callbacks, Progress& progress) {
  if (group.size() == 1) return std::make_unique<ForwardBackward>(config, model, rng, callbacks);
  return std::make_unique<DataParallel>(config, model, optimizer, rng, group, callbacks, progress);
}

}  // namespace heed
