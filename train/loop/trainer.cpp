// The training loop.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/io.h"
#include "core/json.h"
#include "core/storage.h"
#include "train/anomaly.h"
#include "train/machine_memory.h"
#include "train/pretraining.h"
#include "train/run_state.h"
#include "train/stop_signals.h"

namespace heed {
Trainer::Trainer(Config& config, RunFolder& folder, const std::optional<Checkpoint>& resume,
                 Progress& progress, Group* group)
    : config_(config),
      folder_(folder),
      progress_(progress),
      group_(group),
      rounding_(rounding_of(config.train.precision)),
      rng_(static_cast<uint64_t>(config.train.seed)) {
  if (leads()) metrics_ = std::make_unique<MetricsLog>(folder.metrics(), folder.tensorboard());
  try {
    const Owned owned(&memory_kinds[0]);
    model_ = new_model(config, rng_);
    if (config.train.pretrain != Pretrain::none && !resume) load_pretrained(*model_, folder.path());
    rng_.advance();  // tick 0 made the weights; step t draws at tick t
    optimizer_ = std::make_unique<Optimizer>(*model_, config.train.optimizer);
    numbers_ = Tensor::zeros(Shape{config.train.accumulate + 1}, DType::f64, optimizer_->values().device());
  } catch (...) {
    explain_memory(config, nullptr, "while the model was made");
  }
  total_ = steps_of(config);
  plant_ = parse_plant(config.plant);
  // The last share is the largest.
  const int64_t parts = group_ != nullptr ? group_->size() : 1;
  estimate_ = estimate_run(config, *model_, *optimizer_, rng_, total_, {parts - 1, parts});
  place_.planned = config.task->plan(0);
  if (resume) restore(*resume);
}

std::string Trainer::state() const {
  return to_json({.step = step_,
                  .epoch = place_.epoch,
                  .position = place_.position,
                  .tick = rng_.tick(),
                  .draws = rng_.draws(),
                  .validated = validated_,
                  .best_step = best_step_,
                  .without_better = without_better_,
                  .seconds = earlier_seconds_,
                  .window_loss = window_loss_,
                  .window_steps = window_steps_,
                  .skipped = skipped_,
                  .skipped_in_a_row = skipped_in_a_row_,
                  .best = best_});
}

void Trainer::restore(const Checkpoint& checkpoint) {
  load(*model_, checkpoint.file("model.safetensors"));
  optimizer_->load(checkpoint.file("optim.safetensors"));
  const std::string& bytes = checkpoint.file("state.json");
  const std::string name = (checkpoint.folder / "state.json").string();
  const Json json = parse_json(bytes, name);
  try {
    restore_state(read_run_state(json, checkpoint.step, config_.train.accumulate));
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    fail(Fault::data, name, ", bytes 0-", bytes.size() - 1, ": ", error.what(),
         " Take another checkpoint: --ckpt.");
  }
  saved_ = step_;
}

void Trainer::restore_state(const RunState& state) {
  place_ = {state.epoch, state.position, config_.task->plan(state.epoch)};
  if (place_.position > place_.planned) {
    fail(Fault::data, "position is ", place_.position, ". It must be 0 to ", place_.planned,
         ", the batches of epoch ", place_.epoch,
         ": either it is damaged, or the data is not what the run was trained on.");
  }
  step_ = state.step;
  rng_.restore(state.tick, state.draws);
  validated_ = state.validated;
  best_step_ = state.best_step;
  without_better_ = state.without_better;
  earlier_seconds_ = state.seconds;
  window_loss_ = state.window_loss;
  window_steps_ = state.window_steps;
  skipped_ = state.skipped;
  skipped_in_a_row_ = state.skipped_in_a_row;
  best_ = state.best;
}

std::string Trainer::last_good() const {
  return saved_ > 0 ? text(" Last good: ", checkpoint_folder(folder_.path(), saved_).filename(), ".")
                    : " No checkpoint was there yet.";
}

Scores Trainer::validate() {
  const NoTape no_tape;
  const double began = seconds_now();
  const Scores scores = this->scores();
  validation_seconds_ += seconds_now() - began;
  ++validations_;
  std::vector<Scalar> numbers;
  for (const auto& [name, value] : scores.list) numbers.emplace_back(text(score_prefix, name), value);
  if (metrics_) metrics_->log(step_, numbers);
  return scores;
}

void Trainer::take_scores(const Scores& scores) {
  validated_ = step_;
  if (!best_ || scores.better_than(*best_)) {
    best_ = scores;
    best_step_ = step_;
    without_better_ = 0;
  } else {
    ++without_better_;
  }
}

void Trainer::save() {
  if (saved_ == step_) return;
  compare_weights();
  together(group_, [&] { write(); });
  saved_ = step_;
}

void Trainer::rewind() {
  if (!leads()) return;
  // The log last: what a kill in between leaves is a run that goes on from another of its checkpoints, with a
  // log that reaches as far.
  drop_checkpoints_after(folder_.path(), step_);
  mark();
  metrics_->rewind(step_, validated_);
}

void Trainer::mark() {
  const std::vector<int64_t> all = list_checkpoints(folder_.path());
  const auto there = [&](int64_t step) { return std::find(all.begin(), all.end(), step) != all.end(); };
  const std::optional<int64_t> marked = best_step(folder_.path());
  std::optional<int64_t> best = marked;
  if (best_ && there(best_step_))
    best = best_step_;
  else if (marked && !there(*marked) && there(step_))
    best = step_;
  if (best != marked) mark_best(folder_.path(), *best);
}

void Trainer::write() {
  // The last update may have left the range of numbers although loss and gradient had not: such weights are
  // not kept.
  StepBatches none;
  const std::string bad =
      std::isfinite(optimizer_->value_norm()) ? bad_buffer() : find_bad_value(*model_, none, {}, [] {});
  if (!bad.empty()) {
    fail(Fault::numeric, "train: the weights stopped being finite at step ", step_, ": ", bad, ".",
         last_good(), " Lower train.rate (now ", config_.train.schedule.rate, ").");
  }
  if (!leads()) return;
  metrics_->sync();
  // It is put together in memory, which idle tensors may hold.
  if (free_bytes() < 2 * (optimizer_->values().bytes() + optimizer_->moment_bytes()))
    release_cached(Device::cpu);
  std::vector<NamedBytes> files = config_.task->sealed();
  files.push_back({"model.safetensors", heed::save(*model_)});
  files.push_back({"optim.safetensors", optimizer_->save()});
  files.push_back({"state.json", state()});
  write_checkpoint(folder_.path(), step_, files);
  saved_ = step_;
  mark();
  prune_checkpoints(folder_.path(), config_.train.keep, best_step(folder_.path()));
}

bool Trainer::over(const Sitting& now) const {
  return config_.train.time_limit > 0 &&
         seconds_now() - now.began + now.earlier_seconds >= config_.train.time_limit;
}

bool Trainer::tired() const {
  return config_.train.patience > 0 && without_better_ >= config_.train.patience;
}

void Trainer::note(Sitting& sitting, const Step& done) {
  Progress::Now& now = sitting.now;
  const double time = seconds_now();
  sitting.window_tokens += done.tokens;
  now.step = step_;
  if (!done.skipped) {
    window_loss_ += done.loss;
    ++window_steps_;
    now.loss = done.loss;
    now.norm = done.norm;
  }
  now.tokens_per_second = sitting.window_tokens / std::max(time - sitting.window_start, 1e-9);
  now.seconds_left = (time - sitting.began) / static_cast<double>(step_ - sitting.first_step) *
                     static_cast<double>(total_ - step_);
  earlier_seconds_ = sitting.earlier_seconds + time - sitting.began;
  if ((step_ % sitting.log_every == 0 || step_ == total_) && window_steps_ > 0) {
    if (metrics_) {
      metrics_->log(step_, {{"loss", window_loss_ / static_cast<double>(window_steps_)},
                            {"rate", done.rate},
                            {"gradient_norm", now.norm},
                            {"tokens_per_second", now.tokens_per_second},
                            {"seconds", earlier_seconds_}});
    }
    window_loss_ = sitting.window_tokens = 0;
    window_steps_ = 0;
    sitting.window_start = time;
  }
}

void Trainer::validate_in(Sitting& sitting) {
  const double paused = seconds_now();
  const Scores scores = validate();
  take_scores(scores);
  for (const auto& [name, value] : scores.list) sitting.now.take_score(step_, name, value);
  sitting.window_start += seconds_now() - paused;
  earlier_seconds_ = sitting.earlier_seconds + seconds_now() - sitting.began;
}

void Trainer::validate_late(Outcome& outcome) {
  // A clock decided where this is, so the run that goes on knows nothing of it: the checkpoint is saved, and
  // rewind() undoes the rest.
  const double before = validation_seconds_;
  const Scores scores = validate();
  outcome.seconds += validation_seconds_ - before;
  if (best_ && !scores.better_than(*best_)) return;
  outcome.best = scores;
  outcome.best_step = step_;
  together(group_, [&] {
    if (leads()) mark_best(folder_.path(), step_);
  });
}

Outcome Trainer::run() {
  try {
    return train();
  } catch (const Agreed&) {
    throw;
  } catch (...) {
    explain_memory(config_, model_.get(), text("at step ", step_, ".", last_good()));
  }
}

Outcome Trainer::train() {
  const StopSignals signals;
  meet();
  together(group_, [&] { rewind(); });
  const TrainOptions& options = config_.train;
  const int64_t every = validate_every(options, total_);
  const int64_t checkpoint_every = options.checkpoint_every > 0 ? options.checkpoint_every : every;
  Sitting sitting{.began = seconds_now(), .earlier_seconds = earlier_seconds_, .first_step = step_};
  sitting.log_every = std::max<int64_t>(1, std::min<int64_t>(10, total_ / 200));
  sitting.window_start = sitting.began;
  sitting.now.total = total_;
  Outcome outcome;
  std::optional<Trace> trace;
  if (options.anomaly) trace.emplace(names_in(*model_));
  const auto due = [&] { return step_ == total_ || step_ % every == 0; };
  if (step_ > 0 && due() && validated_ != step_) {  // a signal came between this step and its validation
    take_scores(validate());
    saved_ = -1;
    save();
  }
  Told now = told(over(sitting));
  bool asked = now.save;  // before the first step
  while (step_ < total_ && !tired() &&
         (saved_ < 0 || !now.late)) {  // a run that has nothing to show takes one step
    note(sitting, take_step(step_ == sitting.first_step));
    now = told(over(sitting));
    if (now.signal == 0 && due()) validate_in(sitting);
    asked |= now.save;
    if (asked || now.signal != 0 || now.late || step_ % checkpoint_every == 0 || validated_ == step_) save();
    // After it is saved: whoever reads this may be gone.
    progress_.step(sitting.now);
    if (asked) progress_.say("saved", text("at step ", step_, ", as SIGUSR1 asks; the run goes on"));
    asked = false;
    outcome.stopped_by = now.signal;
    if (now.signal != 0 || now.late) break;
  }
  prefetch_.reset();
  progress_.finish();
  outcome.step = step_;
  outcome.early = outcome.stopped_by == 0 && step_ < total_;
  outcome.best_step = best_step_;
  if (best_) outcome.best = *best_;
  outcome.seconds = earlier_seconds_;
  if (now.late && outcome.early && validated_ != step_) validate_late(outcome);
  outcome.skipped = skipped_;
  outcome.replayed = replayed_;
  outcome.step_seconds = step_seconds_;
  outcome.validation_seconds = validation_seconds_;
  outcome.validations = validations_;
  outcome.steps_taken = step_ - sitting.first_step;
  return outcome;
}

}  // namespace heed
