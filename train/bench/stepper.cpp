// Steps of a workload, by the shapes of their batches.
#include "train/bench/stepper.h"

#include "autograd/tape.h"
#include "core/kernels/copy.h"
#include "core/launch.h"

namespace heed::bench {

Stepper::Stepper(Workload& work)
    : work_(work),
      optimizer_(*work.model, work.config->train.optimizer),
      noise_(static_cast<uint64_t>(work.config->train.seed)) {}

int64_t Stepper::warm_up() { return replay_wanted() ? 4 : 2; }

void Stepper::sweep(const Batch& batch) {
  const Tensor loss = work_.loss(batch, {.noise = &noise_});
  backward(loss);
  const Tensor losses[] = {loss.detach()};
  optimizer_.update(losses);
}

Stepper::Lane* Stepper::lane_of(const Batch& batch) {
  constexpr size_t most = 64;  // as in training
  if (!replay_wanted()) return nullptr;
  std::string key;
  for (const Tensor& x : batch.tensors) key += text(x.dtype(), x.shape());
  if (lanes_.size() == most && !lanes_.contains(key)) return nullptr;
  Lane& lane = lanes_[key];
  if (lane.replay == nullptr) {
    lane.batch = batch;
    const auto kept = [this] {
      std::vector<Tensor*> out;
      visit_tensors(*work_.model, [&](const std::string&, Tensor& x) { out.push_back(&x); });
      return out;
    };
    const auto undo = [this, &lane] {
      noise_.restore(noise_.tick(), lane.draws);
      optimizer_.clear();
    };
    lane.replay =
        std::make_unique<heed::Replay>([this, &lane] { sweep(lane.batch); }, ReplayHooks{kept, undo});
    return &lane;
  }
  for (size_t i = 0; i < batch.tensors.size(); ++i) {
    const Tensor& to = lane.batch.tensors[i];
    if (to.storage() != batch.tensors[i].storage()) launch<kernel::Copy>(to.device(), batch.tensors[i], to);
  }
  return &lane;
}

void Stepper::begin() { optimizer_.begin_step(work_.config->train.schedule.rate); }

void Stepper::end() {
  optimizer_.end_step();
  noise_.advance();
}

void Stepper::as_it_is(int64_t step) {
  begin();
  sweep(work_.batch(step));
  end();
}

void Stepper::operator()(int64_t step) {
  begin();
  const Batch batch = work_.batch(step);
  if (Lane* lane = lane_of(batch)) {
    lane->draws = noise_.draws();
    (*lane->replay)();
  } else {
    sweep(batch);
  }
  end();
}

std::string Stepper::why_not_replayed() const {
  if (!replay_wanted()) return "HEED_REPLAY is off";
  for (const auto& [key, lane] : lanes_) {
    if (!lane.replay->why_not().empty()) return lane.replay->why_not();
  }
  return {};
}

}  // namespace heed::bench
