// Gradient accumulation in one process.
#include "heed/train/loop/forward_backward.h"

#include <algorithm>
#include <bit>

#include "heed/autograd/tape.h"

namespace heed {

std::vector<Tensor> ForwardBackward::run(const TrainContext& context, StepBatches& batches, bool first) {
  const double weight = batches.weight();
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < batches.count(); ++i) {
    const Batch batch = batches.at(i);
    begin_draws(i, batches.count());
    AuxiliaryLosses auxiliary;
    Tensor loss = config_.task->loss(model_, batch, {.rng = &rng_, .losses = &auxiliary});
    losses.push_back(loss.detach());
    if (const Tensor auxiliary_loss = auxiliary.sum()) loss = loss + auxiliary_loss;
    if (first) check_listed(model_, loss);
    if (batches.count() > 1) loss = loss * (weight > 0 ? batch.weight / weight : 0);
    backward(loss);
  }
  callbacks_.call_inside(&TrainCallback::after_backward, context);
  return losses;
}

double ForwardBackward::loss_of(const StepBatches& batches, const std::vector<double>& losses) const {
  double loss = 0;
  const double weight = batches.weight();
  for (int64_t i = 0; i < batches.count(); ++i)
    loss += losses[static_cast<size_t>(i)] * (weight > 0 ? batches.weight(i) / weight : 0);
  return loss;
}

void ForwardBackward::begin_draws(int64_t batch, int64_t batches) {
  constexpr int bits_of_draws = 24;  // a tick has 2^24 draws
  const int bits_of_batch = std::bit_width(static_cast<uint64_t>(batches));
  if (batch > 0) rng_.skip_to(batch << std::max(0, bits_of_draws - bits_of_batch));
}

}  // namespace heed
