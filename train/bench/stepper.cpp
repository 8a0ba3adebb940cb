// Training steps of a workload, captured and replayed as in `heed train`.
#include "heed/train/bench/stepper.h"

#include <limits>

#include "heed/autograd/bf16_shadow.h"
#include "heed/autograd/tape.h"
#include "heed/core/distributed/single_process.h"

namespace heed::bench {

Stepper::Stepper(Workload& work)
    : work_(work),
      optimizer_(*work.model, work.config->train.optimizer),
      rng_(static_cast<uint64_t>(work.config->train.seed)),
      captured_([this](StepBatches& batches) { forward_backward(batches.at(0)); }, *work.model, optimizer_,
                rng_, single_process()) {}

StepBatches Stepper::next_batch() {
  if (!prefetch_wanted()) return StepBatches({work_.batch(next_++ % work_.period)});
  if (prefetch_ == nullptr) {
    const auto make = [this, step = int64_t{0}]() mutable {
      return Prefetch::PreparedStep{.batches = {work_.batch(step++ % work_.period)}, .after = {}};
    };
    prefetch_ = std::make_unique<Prefetch>(make, std::numeric_limits<int64_t>::max());
  }
  prefetch_->next();
  return StepBatches(*prefetch_);
}

void Stepper::operator()() {
  begin();
  StepBatches batches = next_batch();
  captured_.replay(batches);
  end();
}

void Stepper::run_eagerly(int64_t step) {
  begin();
  forward_backward(work_.batch(step));
  end();
}

void Stepper::begin() { optimizer_.begin_step(work_.config->train.schedule.learning_rate); }

void Stepper::forward_backward(const Batch& batch) {
  const Bf16Shadow weights(optimizer_.values());
  const Tensor loss = work_.loss(batch, {.rng = &rng_});
  backward(loss);
  const Tensor losses[] = {loss.detach()};
  optimizer_.update(losses);
}

void Stepper::end() {
  optimizer_.end_step();
  rng_.advance();
}

}  // namespace heed::bench
