// The batches of a run in order: counts epochs and positions, and starts the thread that makes batches ahead.
#include "heed/train/loop/batch_stream.h"

#include <utility>

#include "heed/core/memory/storage.h"
#include "heed/train/loop/overfit.h"

namespace heed {

BatchStream::BatchStream(Config& config, const ProcessGroup& group, RunState& state, bool may_prefetch)
    : config_(config),
      group_(group),
      state_(state),
      may_prefetch_(may_prefetch),
      first_num_batches_(plan_epoch(config, state.epoch)),
      place_{.epoch = state.epoch, .position = state.position, .num_batches = first_num_batches_} {}

StepBatches BatchStream::next(int64_t steps_left) {
  StepBatches batches;
  if (!holds_batches(config_.train)) {
    batches = lazy_batches();
  } else if (may_prefetch_ && prefetch_wanted()) {
    if (prefetch_ == nullptr) {
      const auto prepare_step = [this, place = place_]() mutable {
        std::vector<Batch> made = make(place);
        return Prefetch::PreparedStep{.batches = std::move(made), .after = place};
      };
      prefetch_ = std::make_unique<Prefetch>(prepare_step, steps_left);
    }
    place_ = prefetch_->next().after;
    batches = StepBatches(*prefetch_);
  } else {
    batches = StepBatches(make(place_));
  }
  state_.epoch = place_.epoch;
  state_.position = place_.position;
  return batches;
}

std::vector<Batch> BatchStream::make(DataPlace& place) const {
  const MemoryScope owned(MemoryKind::batches);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < config_.train.grad_accumulation; ++i) {
    if (place.position == place.num_batches)
      place = {.epoch = place.epoch + 1, .position = 0, .num_batches = plan(place.epoch + 1)};
    batches.push_back(batch_at(place.position++));
  }
  return batches;
}

StepBatches BatchStream::lazy_batches() {
  std::vector<DataPlace> places;
  std::vector<double> weights;
  plan_unless_planned(place_.epoch);
  for (int64_t i = 0; i < config_.train.grad_accumulation; ++i) {
    if (place_.position == place_.num_batches) {
      plan_unless_planned(++place_.epoch);
      place_.position = 0;
    }
    places.push_back(place_);
    weights.push_back(config_.task->weight(place_.position++));
  }
  return {std::move(weights), [this, places = std::move(places)](int64_t i) {
            const DataPlace& place = places[static_cast<size_t>(i)];
            plan_unless_planned(place.epoch);
            return batch_at(place.position);
          }};
}

void BatchStream::plan_unless_planned(int64_t epoch) {
  if (planned_epoch_ != epoch) place_.num_batches = plan(epoch);
  planned_epoch_ = epoch;
}

int64_t BatchStream::plan(int64_t epoch) const {
  // --overfit keeps the first plan: another thread may still be scoring its batches.
  return config_.train.overfit_batches > 0 ? first_num_batches_ : config_.task->plan(epoch);
}

Batch BatchStream::batch_at(int64_t position) const {
  return group_.size() > 1 ? config_.task->shard(position, {group_.rank(), group_.size()})
                           : config_.task->batch(position);
}

}  // namespace heed
