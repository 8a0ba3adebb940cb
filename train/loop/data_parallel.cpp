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
  /// Forward and backward of all shards; with `reduce`, gradients are sent meanwhile.
  void pass(const TrainContext& context, StepBatches& batches, bool first, bool reduce);
  /// Writes part / whole, the fraction of the step's weight in this process's shard of batch number i, to the
  /// device, where the backward pass reads it.
  void write_factor(int64_t i, double part, double whole);

  Optimizer& optimizer_;
  ProcessGroup& group_;
  Progress& progress_;
  std::unique_ptr<GradientReducer> reducer_;
  Tensor factors_, losses_;  // [batches a step]: fractions of the step's weight; parts of its loss
};

DataParallel::DataParallel(Config& config, Module& model, Optimizer& optimizer, Rng& rng, ProcessGroup& group,
                           const TrainCallbacks& callbacks, Progress& progress)
    : ForwardBackward(config, model, rng, callbacks),
      optimizer_(optimizer),
      group_(group),
      progress_(progress) {}

void DataParallel::synchronize() {
  const Tensor& values = optimizer_.values();
  factors_ = Tensor::zeros(Shape{config_.train.grad_accumulation}, values.dtype(), values.device());
  losses_ = Tensor::zeros(factors_.shape(), values.dtype(), values.device());
  reducer_ = std::make_unique<GradientReducer>(
      optimizer_, make_all_reduce(group_, values.device(),
                                  [this](const std::string& why) { progress_.say("processes", why); }));
}

void DataParallel::begin(StepBatches& batches) {
  const double weight = batches.weight();
  for (int64_t i = 0; i < batches.count(); ++i) write_factor(i, batches.at(i).weight, weight);
}

void DataParallel::write_factor(int64_t i, double part, double whole) {
  launch<kernel::Fill>(factors_.device(), view::slice(factors_, 0, i, i + 1), whole > 0 ? part / whole : 0.0);
}

std::vector<Tensor> DataParallel::run(const TrainContext& context, StepBatches& batches, bool first) {
  reducer_->begin();
  pass(context, batches, first, true);
  reducer_->finish(losses_);
  return {losses_};
}

void DataParallel::rerun(const TrainContext& context, StepBatches& batches) {
  pass(context, batches, false, false);
}

void DataParallel::pass(const TrainContext& context, StepBatches& batches, bool first, bool reduce) {
  // A callback may change gradients after the backward pass, so gradients are then sent only after it.
  const bool early = reduce && !callbacks_.inside_steps();
  const double weight = batches.weight();
  for (int64_t i = 0; i < batches.count(); ++i) {
    const Tensor part = view::slice(losses_, 0, i, i + 1);
    const Batch batch = batches.at(i);
    // Held batches may belong to a captured step, which reads factors that were written before it.
    if (!batches.is_held()) write_factor(i, batch.weight, weight);
    begin_draws(i, batches.count());
    if (batch.weight == 0) {  // fewer rows than processes
      launch<kernel::Fill>(part.device(), part, 0.0);
      continue;
    }
    const SharedRows rows(batch.rows);
    AuxiliaryLosses auxiliary;
    Tensor loss = config_.task->loss(model_, batch, {.rng = &rng_, .losses = &auxiliary});
    const Tensor factor = view::reshape(view::slice(factors_, 0, i, i + 1), loss.shape());
    launch<kernel::Copy>(part.device(), view::reshape(loss.detach() * factor, Shape{1}), part);
    if (const Tensor more = auxiliary.sum()) loss = loss + more;
    if (first) check_listed(model_, loss);
    loss = loss * factor;
    if (early && i + 1 == batches.count()) {
      const GradientHooks hooks = reducer_->watch();
      backward(loss);
    } else {
      backward(loss);
    }
  }
  callbacks_.call_inside(&TrainCallback::after_backward, context);
}

void DataParallel::abandon() {
  // The loss tells the other processes that the step failed.
  launch<kernel::Fill>(losses_.device(), losses_, NAN);
  reducer_->finish(losses_);
}

double DataParallel::loss_of(const StepBatches&, const std::vector<double>& losses) const {
  double loss = 0;
  for (const double part : losses) loss += part;
  return loss;
}

void DataParallel::share_buffers() {
  for (const Named& one : buffers(model_)) {  // listed anew each time: a step may replace a buffer
    const Tensor& buffer = *one.tensor;
    const Tensor here = contiguous(buffer.to(Device::cpu).detach());
    group_.broadcast(here.raw(), here.bytes());
    if (here.storage() != buffer.storage())
      launch<kernel::Copy>(buffer.device(), here.to(buffer.device()), buffer);
  }
}

}  // namespace

std::unique_ptr<ForwardBackward> make_forward_backward(Config& config, Module& model, Optimizer& optimizer,
                                                       Rng& rng, ProcessGroup& group,
                                                       const TrainCallbacks& callbacks, Progress& progress) {
  if (group.size() == 1) return std::make_unique<ForwardBackward>(config, model, rng, callbacks);
  return std::make_unique<DataParallel>(config, model, optimizer, rng, group, callbacks, progress);
}

}  // namespace heed
