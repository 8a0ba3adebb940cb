// The training loop, on one page: schedule, step, log, evaluate, save, stop.
#include "heed/train/loop/trainer.h"

#include <utility>

#include "heed/core/memory/storage.h"
#include "heed/train/loop/find_non_finite.h"
#include "heed/train/loop/overfit.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

/// Returns what make() makes, which owns memory of weights. An error for lack of memory lists its users.
template <class Make>
auto make_weights(const Config& config, Make&& make) {
  try {
    const MemoryScope owned(MemoryKind::weights);
    return make();
  } catch (...) {
    explain_memory(config, nullptr, "while the model was made");
  }
}

/// The model with its initial weights.
std::unique_ptr<Module> make_model(Config& config, const RunFolder& folder, bool resumes, Rng& rng) {
  return make_weights(config, [&] {
    std::unique_ptr<Module> model = new_model(config, rng);
    if (!folder.is_none()) check_savable(*model);
    if (config.train.pretrain != Pretrain::none && !resumes) load_pretrained(*model, folder.path());
    rng.advance();  // tick 0 made the weights; step t draws at tick t
    return model;
  });
}

/// The optimizer of the model's parameters, in the groups of the settings.
std::unique_ptr<Optimizer> make_optimizer(Config& config, Module& model) {
  return make_weights(config, [&] { return std::make_unique<Optimizer>(model, config.optimizer_options()); });
}

/// Estimates the run, and shows that on the line of progress.
Estimate estimate_with_progress(const Config& config, Module& model, Optimizer& optimizer, Rng& rng,
                                int64_t steps, const ProcessGroup& group, Progress& progress) {
  progress.say("estimate", "measuring memory and time of the largest batches");
  const ProgressScope shown(progress, "estimate");
  // In a group, the last shard of a batch is the largest.
  const BatchShard largest_shard{group.size() - 1, group.size()};
  return estimate_run(config, model, optimizer, rng, steps, largest_shard);
}

}  // namespace

Trainer::Trainer(Config& config, RunFolder& folder, const std::optional<Checkpoint>& resume,
                 Progress& progress, ProcessGroup& group, std::vector<TrainCallback*> callbacks)
    : config_(config),
      progress_(progress),
      group_(group),
      callbacks_(std::move(callbacks)),
      autocast_(rounding_of(config.train.precision)),
      log_(folder, group, progress, state_),
      rng_(static_cast<uint64_t>(config.train.seed)),
      model_(make_model(config, folder, resume.has_value(), rng_)),
      optimizer_(make_optimizer(config, *model_)),
      total_(steps_of(config)),
      validate_every_(validate_every(config.train, total_, plan_epoch(config, 0))),
      estimate_(config.train.estimate
                    ? estimate_with_progress(config, *model_, *optimizer_, rng_, total_, group, progress)
                    : Estimate()),
      checkpoints_(config, folder, *model_, *optimizer_, rng_, group, state_, log_, resume),
      batches_(config, group, state_, !callbacks_.inside_steps()),
      non_finite_(config.train, *model_, *optimizer_, group, state_, log_, progress, checkpoints_),
      step_(config, *model_, *optimizer_, rng_, group, state_, non_finite_, callbacks_, progress),
      validation_(config, *model_, group),
      stopping_(config.train, total_, state_) {}

TrainResult Trainer::run() {
  try {
    return train();
  } catch (const CollectiveError&) {
    throw;
  } catch (...) {
    explain_memory(config_, model_.get(), text("at step ", state_.step, ".", checkpoints_.last_good()));
  }
}

TrainResult Trainer::train() {
  // A signal that came before, to StopSignals of the caller: then no step is taken.
  const int signal_before = agree_on_stop(group_, {.signal = StopSignals::received()}).signal;
  const StopSignals signals;
  optimizer_->check_updates(*model_);
  checkpoints_.check_same_weights();
  step_.synchronize();
  checkpoints_.truncate();
  log_.begin(total_, {.validate_every = config_.task->has_validation() ? validate_every_ : 0,
                      .validation_seconds = estimate_.validation_seconds,
                      .test_seconds = estimate_.after_steps()});
  callbacks_.call(&TrainCallback::before_training, TrainContext{state_.step, *model_, group_});
  std::optional<Trace> trace;
  if (config_.train.detect_anomaly) trace.emplace(names_in(*model_));
  const int64_t save_every =
      config_.train.checkpoint_every > 0 ? config_.train.checkpoint_every : validate_every_;
  if (signal_before == 0 && state_.step > 0 && validation_due() && state_.validated != state_.step) {
    evaluate();  // a signal ended the last session between this step and its validation
    log_.outside_steps([&] { checkpoints_.save(); });
  }

  StopRequest request = stop_request();
  bool save_asked = request.save;  // SIGUSR1 may come before the first step
  int stopped_by = signal_before;
  while (stopped_by == 0 && !is_complete()) {
    // A session without a checkpoint takes one step before it stops for time.
    if (request.out_of_time && checkpoints_.saved() >= 0) break;
    log_.step(take_step());
    request = stop_request();
    if (request.signal == 0 && validation_due()) evaluate();

    save_asked |= request.save;
    const bool stops = request.signal != 0 || request.out_of_time;
    if (save_asked || stops || state_.step % save_every == 0 || state_.step == total_ ||
        state_.validated == state_.step)
      save();
    log_.show();  // after saving, since writing may fail with SIGPIPE
    if (save_asked)
      progress_.say("saved", text("at step ", state_.step, ", as SIGUSR1 asked; training continues"));
    save_asked = false;
    stopped_by = request.signal;
    if (stops) break;
  }

  batches_.stop();
  progress_.finish();
  TrainResult result = this->result();
  result.stopped_by = stopped_by;
  result.early = stopped_by == 0 && state_.step < total_;
  if (request.out_of_time && result.early && config_.task->has_validation() &&
      state_.validated != state_.step)
    evaluate_late(result);
  optimizer_->swap_average();  // the model is left as it was scored
  return result;
}

StepResult Trainer::take_step() {
  const double began = seconds_now();
  StepBatches batches = batches_.next(total_ - state_.step);
  ++state_.step;
  const Schedule& schedule = config_.train.schedule;
  const double rate = schedule.at(state_.step, total_, config_.model.d_model);
  const StepResult result = step_.run(std::move(batches), rate, schedule.momentum(state_.step, total_));
  step_seconds_ += seconds_now() - began;
  return result;
}

StopRequest Trainer::stop_request() {
  return agree_on_stop(group_, {.signal = StopSignals::received(),
                                .out_of_time = stopping_.out_of_time(log_.seconds()),
                                .save = SaveSignal::take()});
}

bool Trainer::validation_due() const {
  return config_.task->has_validation() && (state_.step == total_ || state_.step % validate_every_ == 0);
}

Scores Trainer::validate() {
  const ProgressScope shown(progress_, "validation");
  const AveragedWeights averaged(*optimizer_);
  const Scores scores = validation_.run();
  std::vector<Scalar> numbers;
  for (const auto& [name, value] : scores.list) numbers.emplace_back(text(score_prefix, name), value);
  log_.log(numbers);
  callbacks_.call(&TrainCallback::after_validation, TrainContext{state_.step, *model_, group_}, scores);
  return scores;
}

void Trainer::evaluate() {
  const Scores scores = validate();
  stopping_.update_best(scores);
  log_.validation(scores, validation_.last_seconds());
}

void Trainer::save() {
  if (checkpoints_.saved() == state_.step) return;
  log_.outside_steps([&] {
    checkpoints_.save();
    if (checkpoints_.saved() == state_.step)  // else there is no folder
      callbacks_.call(&TrainCallback::after_save, TrainContext{state_.step, *model_, group_});
  });
}

void Trainer::evaluate_late(TrainResult& result) {
  const Scores scores = validate();
  result.validations = validation_.count();
  result.validation_seconds = validation_.seconds();
  result.seconds += validation_.last_seconds();
  if (state_.best && !scores.better_than(*state_.best)) return;
  result.best = scores;
  result.best_step = state_.step;
  checkpoints_.mark_best();
}

TrainResult Trainer::result() const {
  return {.step = state_.step,
          .best_step = state_.best_step,
          .best = state_.best.value_or(Scores()),
          .step_seconds = step_seconds_,
          .steps_taken = state_.step - log_.first_step(),
          .validation_seconds = validation_.seconds(),
          .validations = validation_.count(),
          .seconds = state_.seconds,
          .skipped = state_.skipped,
          .replayed = step_.replayed()};
}

}  // namespace heed
