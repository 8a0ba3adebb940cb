// Logs loss and speed, averaged over the steps since the last line of metrics.
#include "heed/train/loop/step_log.h"

#include <algorithm>

namespace heed {

StepLog::StepLog(const RunFolder& folder, const ProcessGroup& group, Progress& progress, RunState& state)
    : progress_(progress), state_(state) {
  if (group.is_main() && !folder.is_none())
    metrics_ = std::make_unique<MetricsLog>(folder.metrics(), folder.tensorboard());
}

void StepLog::begin(int64_t total, const EvaluationTimes& evaluation) {
  total_ = total;
  evaluation_ = evaluation;
  first_step_ = state_.step;
  log_every_ = std::clamp<int64_t>(total / 200, 1, 10);
  began_ = window_start_ = seconds_now();
  earlier_seconds_ = state_.seconds;
  window_tokens_ = window_examples_ = 0;
  now_ = {.total = total};
}

void StepLog::step(const StepResult& result) {
  const double now = seconds_now();
  window_tokens_ += result.tokens;
  window_examples_ += result.examples;
  now_.step = state_.step;
  if (!result.skipped) {
    state_.window_loss += result.loss;
    ++state_.window_steps;
    now_.loss = result.loss;
    now_.norm = result.norm;
  }
  const double window_seconds = std::max(now - window_start_, 1e-9);
  now_.tokens_per_second = window_tokens_ / window_seconds;
  now_.examples_per_second = window_examples_ / window_seconds;
  now_.seconds_left = seconds_left(now);
  state_.seconds = earlier_seconds_ + now - began_;
  if ((state_.step % log_every_ != 0 && state_.step != total_) || state_.window_steps == 0) return;
  log({{"loss", state_.window_loss / static_cast<double>(state_.window_steps)},
       {"learning_rate", result.rate},
       {"gradient_norm", now_.norm},
       now_.examples_per_second > 0 ? Scalar("examples_per_second", now_.examples_per_second)
                                    : Scalar("tokens_per_second", now_.tokens_per_second),
       {"seconds", state_.seconds}});
  state_.window_loss = window_tokens_ = window_examples_ = 0;
  state_.window_steps = 0;
  window_start_ = now;
}

double StepLog::seconds_left(double now) const {
  const int64_t every = evaluation_.validate_every, steps = total_ - state_.step;
  // The last step is always validated.
  const auto validations_until = [&](int64_t step) {
    return every == 0 ? int64_t{0} : step / every + (step == total_ && step % every != 0 ? 1 : 0);
  };
  const int64_t validations = validations_until(total_) - validations_until(state_.step);
  const double step_seconds = std::max(now - began_ - validation_seconds_, 0.0) /
                              static_cast<double>(std::max<int64_t>(state_.step - first_step_, 1));
  return step_seconds * static_cast<double>(steps) +
         evaluation_.validation_seconds * static_cast<double>(validations) + evaluation_.test_seconds;
}

void StepLog::validation(const Scores& scores, double seconds) {
  validation_seconds_ += seconds;
  evaluation_.validation_seconds = seconds;  // measured: replaces the estimate
  for (const auto& [name, value] : scores.list) now_.take_score(state_.step, name, value);
  window_start_ += seconds;
  state_.seconds = this->seconds();
}

void StepLog::log(const std::vector<Scalar>& numbers) {
  if (metrics_ != nullptr) metrics_->log(state_.step, numbers);
}

void StepLog::sync() {
  if (metrics_ != nullptr) metrics_->sync();
}

void StepLog::truncate() {
  if (metrics_ != nullptr) metrics_->truncate_to(state_.step, state_.validated);
}

double StepLog::seconds() const { return earlier_seconds_ + seconds_now() - began_; }

}  // namespace heed
