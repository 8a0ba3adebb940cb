// One training step: forward, backward, update; and the search for the first value that is not finite.
#include "heed/train/loop/train_step.h"

#include <cmath>

#include "heed/autograd/bf16_shadow.h"
#include "heed/autograd/tape.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/train/loop/find_non_finite.h"

namespace heed {

TrainStep::TrainStep(Config& config, Module& model, Optimizer& optimizer, Rng& rng, ProcessGroup& group,
                     const RunState& state, NonFinitePolicy& non_finite, const TrainCallbacks& callbacks,
                     Progress& progress)
    : config_(config),
      model_(model),
      optimizer_(optimizer),
      rng_(rng),
      group_(group),
      state_(state),
      non_finite_(non_finite),
      callbacks_(callbacks),
      progress_(progress),
      numbers_(
          Tensor::zeros(Shape{config.train.grad_accumulation + 1}, DType::f64, optimizer.values().device())),
      passes_(make_forward_backward(config, model, optimizer, rng, group, callbacks, progress)),
      captured_([this](StepBatches& batches) { forward_backward_update(batches); }, model, optimizer, rng,
                group) {}

StepResult TrainStep::run(StepBatches batches, double rate, std::optional<double> momentum) {
  callbacks_.call_inside(&TrainCallback::before_step, context(), batches);
  non_finite_.keep_buffers();
  const int64_t tick = rng_.tick(), draws = rng_.draws();
  StepResult result{.rate = rate};
  std::string bad;
  try {
    compute(batches, rate, momentum);
    // This copy is the first wait for the device in the step. It reads losses and norm at once, so a value
    // that is not finite is noticed in the same step.
    std::vector<double> numbers = numbers_.to_doubles();
    result.norm = std::sqrt(numbers.back());
    numbers.pop_back();
    result.loss = passes_->loss_of(batches, numbers);
  } catch (const NotFinite& error) {  // thrown with train.detect_anomaly
    passes_->abandon();
    optimizer_.clear();
    result.loss = NAN;
    bad = error.sentence();
  }
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.norm);
  if (result.skipped && bad.empty()) bad = find_bad(batches, tick, draws);
  if (result.skipped) {
    non_finite_.restore_buffers();
    non_finite_.failed(result, bad);
  } else {
    non_finite_.passed();
  }
  passes_->share_buffers();
  for (const double tokens : group_.all_gather(static_cast<double>(batches.tokens())))
    result.tokens += tokens;
  if (result.tokens == 0) {
    for (const double examples : group_.all_gather(static_cast<double>(batches.examples())))
      result.examples += examples;
  }
  rng_.advance();
  callbacks_.call(&TrainCallback::after_step, context(), result);
  return result;
}

void TrainStep::compute(StepBatches& batches, double rate, std::optional<double> momentum) {
  optimizer_.begin_step(rate, momentum);
  if (batches.is_held()) passes_->begin(batches);
  if (is_first_ || config_.train.detect_anomaly || callbacks_.inside_steps())
    captured_.run(batches);
  else
    captured_.replay(batches);
  is_first_ = false;
  optimizer_.end_step();
  if (said_why_not_ || captured_.why_not().empty()) return;
  said_why_not_ = true;
  progress_.say("replay", text("CUDA graph replay is off: ", captured_.why_not()));
}

void TrainStep::forward_backward_update(StepBatches& batches) {
  std::vector<Tensor> losses;
  {
    const Bf16Shadow weights(optimizer_.values());
    losses = passes_->run(context(), batches, is_first_);
  }
  optimizer_.update(losses);
  // Losses and norm go into one tensor, so that one copy to the host reads them.
  int64_t count = 0;
  const auto append = [&](const Tensor& x) {
    const Tensor target = view::slice(numbers_, 0, count, count + x.size());
    launch<kernel::Copy>(target.device(), view::reshape(x, target.shape()), target);
    count += x.size();
  };
  for (const Tensor& loss : losses) append(loss);
  append(optimizer_.squared_norm());
}

std::string TrainStep::find_bad(StepBatches& batches, int64_t tick, int64_t draws) {
  optimizer_.forget_step();
  // The optimizer skipped the update, so the same step can be computed again.
  non_finite_.restore_buffers();
  std::string bad = find_bad_value(model_, batches, config_.task->tensor_names(), [&] {
    rng_.restore(tick, draws);
    passes_->rerun(context(), batches);
  });
  optimizer_.clear();
  return bad;
}

}  // namespace heed
