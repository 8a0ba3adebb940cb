// Gives the batches of a run in order: keeps epoch and position, and starts the thread that makes them.
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
      first_planned_(plan_epoch(config, state.epoch)),
      place_{state.epoch, state.position, first_planned_} {}

StepBatches BatchStream::next(int64_t steps_left) {
  StepBatches batches;
  if (!holds_batches(config_.train)) {
    batches = lazy_batches();
  } else if (may_prefetch_ && prefetch_wanted()) {
    if (prefetch_ == nullptr) {
      const auto ahead = [this, place = place_]() mutable {
        Prefetch::Made made{.batches = make(place), .after = {}};
        made.after = place;
        return made;
      };
      prefetch_ = std::make_unique<Prefetch>(ahead, steps_left);
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
    if (place.position == place.planned) place = {place.epoch + 1, 0, planned(place.epoch + 1)};
    batches.push_back(batch_at(place.position++));
  }
  return batches;
}

StepBatches BatchStream::lazy_batches() {
  struct Planned {
    int64_t epoch, position;
  };
  std::vector<Planned> places;
  std::vector<double> weights;
  plan(place_.epoch);
  for (int64_t i = 0; i < config_.train.grad_accumulation; ++i) {
    if (place_.position == place_.planned) {
      plan(++place_.epoch);
      place_.position = 0;
    }
    places.push_back({place_.epoch, place_.position++});
    weights.push_back(config_.task->weight(places.back().position));
  }
  return {std::move(weights), [this, places = std::move(places)](int64_t i) {
            const auto [epoch, position] = places[static_cast<size_t>(i)];
            plan(epoch);
            return batch_at(position);
          }};
}

void BatchStream::plan(int64_t epoch) {
  if (planned_epoch_ != epoch) place_.planned = planned(epoch);
  planned_epoch_ = epoch;
}

int64_t BatchStream::planned(int64_t epoch) const {
  // Keep the first plan: another thread may still be scoring its batches.
  return config_.train.overfit_batches > 0 ? first_planned_ : config_.task->plan(epoch);
}

Batch BatchStream::batch_at(int64_t position) const {
  return group_.size() > 1 ? config_.task->shard(position, {group_.rank(), group_.size()})
                           : config_.task->batch(position);
}

}  // namespace heed
