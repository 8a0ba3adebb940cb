// One step of the training loop: forward, backward and update, replayed where that can be; and what is done
// when its numbers are not finite.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/kernels/copy.h"
#include "core/launch.h"
#include "train/trainer.h"

namespace heed {

std::vector<Batch> Trainer::make_batches(DataPlace& place) const {
  const Owned owned(&memory_kinds[3]);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < config_.train.accumulate; ++i) {
    if (place.position == place.planned) place = {place.epoch + 1, 0, config_.task->plan(place.epoch + 1)};
    batches.push_back(batch_at(place.position++));
  }
  return batches;
}

StepBatches Trainer::planned_batches() {
  struct Planned {
    int64_t epoch, position;
  };
  std::vector<Planned> places;
  std::vector<double> weights;
  const auto plan = [this](int64_t epoch) {
    if (planned_epoch_ != epoch) place_.planned = config_.task->plan(epoch);
    planned_epoch_ = epoch;
  };
  plan(place_.epoch);
  for (int64_t i = 0; i < config_.train.accumulate; ++i) {
    if (place_.position == place_.planned) {
      plan(++place_.epoch);
      place_.position = 0;
    }
    places.push_back({place_.epoch, place_.position++});
    weights.push_back(config_.task->weight(places.back().position));
  }
  return {std::move(weights), [this, plan, places = std::move(places)](int64_t i) {
            const auto [epoch, position] = places[static_cast<size_t>(i)];
            plan(epoch);
            return batch_at(position);
          }};
}

Batch Trainer::batch_at(int64_t position) const {
  return group_ != nullptr ? config_.task->share(position, {group_->rank(), group_->size()})
                           : config_.task->batch(position);
}

StepBatches Trainer::next_batches() {
  if (!holds_batches(config_.train)) return planned_batches();
  if (prefetch_ == nullptr && prefetch_wanted() && config_.plant.empty()) {
    const auto make = [this, place = place_]() mutable {
      Prefetch::Made made{.batches = make_batches(place), .after = {}};
      made.after = place;
      return made;
    };
    prefetch_ = std::make_unique<Prefetch>(make, total_ - step_);
  }
  if (prefetch_ == nullptr) return StepBatches(make_batches(place_));
  const Prefetch::Made& made = prefetch_->next();
  place_ = made.after;
  return StepBatches(made.batches);
}

/// Each batch of a step draws in a range of its own, of the 2^24 draws of a tick: of several processes, one
/// without rows of a batch draws nothing there, and must not be behind in the next.
void Trainer::begin_draws(int64_t batch, int64_t batches) {
  if (batch == 0) return;
  rng_.skip_to(
      batch << std::max<int>(0, 24 - static_cast<int>(std::bit_width(static_cast<uint64_t>(batches)))));
}

std::vector<Tensor> Trainer::sweep(StepBatches& batches, bool first) {
  if (group_ != nullptr) return sweep_shares(batches, first, true);
  const double weight = batches.weight();
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < batches.count(); ++i) {
    const Batch batch = batches.at(i);
    begin_draws(i, batches.count());
    Terms terms;
    Tensor loss = config_.task->loss(*model_, batch, {.noise = &rng_, .terms = &terms});
    losses.push_back(loss.detach());
    if (const Tensor more = terms.sum()) loss = loss + more;
    if (first) check_listed(*model_, loss);
    if (batches.count() > 1) loss = loss * (weight > 0 ? batch.weight / weight : 0);
    backward(loss);
  }
  if (plants(Plant::Where::gradient)) plant_gradient(plant_, *model_);
  return losses;
}

void Trainer::sweep_again(StepBatches& batches) {
  if (group_ != nullptr)
    sweep_shares(batches, false, false);
  else
    sweep(batches, false);
}

Trainer::Lane* Trainer::lane_of(StepBatches& batches) {
  // More graphs than this are of shapes that seldom come again.
  constexpr size_t most = 256;
  if (!replay_wanted() || config_.train.anomaly || !config_.plant.empty()) return nullptr;
  if (!batches.is_held()) {
    tell_why_not(text("each would keep its ", batches.count(), " batches on the device"));
    return nullptr;
  }
  std::string key;
  for (const Batch& batch : batches.all()) {
    for (const Tensor& x : batch.tensors) key += text(x.dtype(), x.shape());
    // With several batches a step, their weights are factors in it; of a share, where its draws begin.
    if (group_ != nullptr)
      key += text(" ", batch.rows.first, "+", batch.rows.count, ";");
    else if (batches.count() > 1)
      key += text(" ", batch.weight, ";");
  }
  if (group_ != nullptr) {  // they record the same steps, though the shares of one may look alike in two
    std::string all;
    for (const std::string& theirs : group_->gather(key)) all += theirs + '|';
    key = all;
  }
  const auto found = lanes_.find(key);
  if (found == lanes_.end() && lanes_.size() == most) return nullptr;
  Lane& lane = found == lanes_.end() ? lanes_[key] : found->second;
  if (lane.replay == nullptr) {
    if (prefetch_ != nullptr) batches = StepBatches(prefetch_->fresh());
    lane.batches = batches;
    const auto step = [this, &lane] { sweep_and_update(lane.batches, false); };
    const auto kept = [this] {
      std::vector<Tensor*> out;
      visit_tensors(*model_, [&](const std::string&, Tensor& x) { out.push_back(&x); });
      return out;
    };
    const auto undo = [this, &lane] {
      rng_.restore(rng_.tick(), lane.draws);
      optimizer_->clear();
    };
    ReplayHooks hooks{kept, undo};
    if (group_ != nullptr) hooks.agreed = [this](const std::string& why_not) { return first_said(why_not); };
    lane.replay = std::make_unique<Replay>(step, std::move(hooks));
    return &lane;
  }
  if (prefetch_ != nullptr) {
    prefetch_->into(lane.batches.all());
  } else {
    for (size_t i = 0; i < batches.all().size(); ++i) {
      const Batch& from = batches.all()[i];
      Batch& to = lane.batches.all()[i];
      for (size_t k = 0; k < from.tensors.size(); ++k)
        launch<kernel::Copy>(to.tensors[k].device(), from.tensors[k], to.tensors[k]);
      to.weight = from.weight;
      to.tokens = from.tokens;
    }
  }
  batches = lane.batches;
  return &lane;
}

void Trainer::tell_why_not(const std::string& why) {
  if (told_why_) return;
  told_why_ = true;
  progress_.say("replay", text("steps run as they are, since ", why));
}

void Trainer::sweep_and_update(StepBatches& batches, bool first) {
  const std::vector<Tensor> losses = sweep(batches, first);
  optimizer_->update(losses);
  // Side by side, so that the host reads them at once.
  int64_t at = 0;
  const auto keep = [&](const Tensor& x) {
    const Tensor place = view::slice(numbers_, 0, at, at + x.size());
    launch<kernel::Copy>(place.device(), view::reshape(x, place.shape()), place);
    at += x.size();
  };
  for (const Tensor& loss : losses) keep(loss);
  keep(optimizer_->squared_norm());
}

void Trainer::compute(StepBatches& batches, bool first) {
  optimizer_->begin_step(config_.train.schedule.at(step_, total_, config_.model.width));
  if (group_ != nullptr && batches.is_held()) begin_shares(batches);
  Lane* lane = first ? nullptr : lane_of(batches);
  if (lane == nullptr && prefetch_ != nullptr) batches = StepBatches(prefetch_->fresh());
  if (lane != nullptr) {
    lane->draws = rng_.draws();
    (*lane->replay)();
    replayed_ += lane->replay->replays() ? 1 : 0;
    if (!lane->replay->why_not().empty()) tell_why_not(lane->replay->why_not());
  } else {
    sweep_and_update(batches, first);
  }
  optimizer_->end_step();
}

std::vector<Named> Trainer::buffers() const {
  std::vector<Named> all = tensors(*model_);
  std::erase_if(all, [](const Named& one) { return one.tensor->node() != nullptr; });
  return all;
}

std::string Trainer::bad_buffer() const {
  for (const Named& one : buffers()) {
    const std::string found = first_bad_value(*one.tensor, one.name, "a buffer");
    if (!found.empty()) return found;
  }
  return {};
}

void Trainer::keep_buffers() {
  if (config_.train.on_nan != OnNan::skip) return;
  const std::vector<Named> all = buffers();
  kept_.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Kept& kept = kept_[i];
    kept.place = all[i].tensor;
    kept.was = *kept.place;
    if (!kept.numbers || kept.numbers.shape() != kept.was.shape())  // else in the memory of the step before
      kept.numbers = Tensor::zeros(kept.was.shape(), kept.was.dtype(), kept.was.device());
    launch<kernel::Copy>(kept.was.device(), kept.was, kept.numbers);
  }
}

void Trainer::restore_buffers() {
  for (const Kept& kept : kept_) {
    launch<kernel::Copy>(kept.was.device(), kept.numbers, kept.was);
    *kept.place = kept.was;
  }
}

Trainer::Step Trainer::take_step(bool first) {
  Step done;
  const double began = seconds_now();
  StepBatches batches = next_batches();
  ++step_;
  if (plants(Plant::Where::parameter)) plant_parameter(plant_, *model_);
  if (plants(Plant::Where::input)) batches.change_first([this](Batch& batch) { plant_input(plant_, batch); });
  keep_buffers();
  const int64_t tick = rng_.tick(), draws = rng_.draws();
  done.rate = config_.train.schedule.at(step_, total_, config_.model.width);
  std::string bad;
  try {
    compute(batches, first);
    // Up to here nothing has waited for the device. Its numbers are read once a step, by one copy: a number
    // that is not finite ends the run at its very step.
    std::vector<double> numbers = numbers_.to_doubles();
    done.norm = std::sqrt(numbers.back());
    numbers.pop_back();
    done.loss = loss_of(batches, numbers);
  } catch (const NotFinite& error) {  // of anomaly = true
    if (group_ != nullptr) {          // the others wait for this member's gradients, and learn from the loss
      launch<kernel::Fill>(tail_.device(), tail_, NAN);
      exchange_->finish(tail_);
    }
    optimizer_->clear();
    done.loss = NAN;
    bad = error.sentence();
  }
  if (bad.empty() && !(std::isfinite(done.loss) && std::isfinite(done.norm))) {
    optimizer_->forget_step();
    // The update was left out, so the same step can be computed again with the same random numbers.
    restore_buffers();
    bad = find_bad_value(*model_, batches, config_.task->parts(), [&] {
      rng_.restore(tick, draws);
      sweep_again(batches);
    });
    optimizer_->clear();
  }
  done.skipped = !bad.empty();
  if (done.skipped) {
    restore_buffers();
    bad = agreed(bad);
    together(group_, [&] { stop_or_skip(done, bad); });
  } else {
    skipped_in_a_row_ = 0;
  }
  if (group_ != nullptr) spread_buffers();
  done.tokens = static_cast<double>(batches.tokens());
  if (group_ != nullptr) {
    double tokens = 0;
    for (const double theirs : group_->gather(done.tokens)) tokens += theirs;
    done.tokens = tokens;
  }
  rng_.advance();
  step_seconds_ += seconds_now() - began;
  return done;
}

void Trainer::stop_or_skip(const Step& step, const std::string& bad) {
  const std::string what =
      text(std::isfinite(step.loss) ? "the gradient norm" : "the loss", " became ",
           std::isfinite(step.loss) ? step.norm : step.loss, " at step ", step_, ": ", bad, ".");
  if (config_.train.on_nan == OnNan::stop) {
    fail(Fault::numeric, "train: ", what, last_good(), " Lower train.rate (now ", config_.train.schedule.rate,
         "), or leave such steps out with --on-nan skip.");
  }
  if (!std::isfinite(optimizer_->value_norm()) || !bad_buffer().empty()) {
    fail(Fault::numeric, "train: ", what, last_good(),
         " The weights themselves are not finite, so leaving steps out does not help. Lower train.rate (now ",
         config_.train.schedule.rate, ").");
  }
  ++skipped_;
  ++skipped_in_a_row_;
  if (metrics_) metrics_->log(step_, {{"skipped", static_cast<double>(skipped_)}});
  progress_.say("skipped", what);
  if (skipped_in_a_row_ >= config_.train.skip_limit) {
    fail(Fault::numeric, "train: ", what, last_good(), " ", skipped_in_a_row_,
         " steps in a row were left out (train.skip_limit). Lower train.rate (now ",
         config_.train.schedule.rate, ").");
  }
}

}  // namespace heed
