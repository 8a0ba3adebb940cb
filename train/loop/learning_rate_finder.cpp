// The learning rate range test: its own loop over ordinary training steps.
#include "heed/train/loop/learning_rate_finder.h"

#include <algorithm>
#include <cmath>

#include "heed/autograd/autocast.h"
#include "heed/core/distributed/single_process.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/loop/batch_stream.h"
#include "heed/train/loop/forward_backward.h"
#include "heed/train/loop/run_estimate.h"

namespace heed {
namespace {

constexpr double mean_decay = 0.7;  // decay of the running mean of losses, by which divergence is judged

std::string range_name() { return advice("find-lr", "LearningRateRange"); }

void check(const LearningRateRange& range) {
  if (!(range.from > 0 && range.from < range.to && std::isfinite(range.to)))
    fail(range_name(), ": the rates go from ", range.from, " to ", range.to,
         ". The first must be above 0 and the last above the first.");
  if (range.steps < 10 || range.steps > 100000)
    fail(range_name(), ": steps = ", range.steps, ". It must be 10 to 100000.");
  if (!(range.divergence > 1))
    fail(range_name(), ": divergence is ", range.divergence, ". It must be above 1.");
}

double rate_of(const LearningRateRange& range, int64_t step) {
  const double done = static_cast<double>(step) / static_cast<double>(range.steps - 1);
  return range.from * std::pow(range.to / range.from, done);
}

/// The slope of the smoothed loss at step `at`, per decade of the rate: a difference over `reach` steps each
/// way.
double slope(const LearningRateCurve& curve, int64_t at, int64_t reach) {
  const auto before = static_cast<size_t>(at - reach), after = static_cast<size_t>(at + reach);
  return (curve.smoothed[after] - curve.smoothed[before]) /
         std::log10(curve.rates[after] / curve.rates[before]);
}

}  // namespace

std::optional<double> LearningRateCurve::suggestion() const {
  if (!steepest) return std::nullopt;
  return rates[*steepest];
}

void analyse(LearningRateCurve& curve) {
  const auto count = static_cast<int64_t>(curve.losses.size());
  // A loss that is not finite only ends the test.
  int64_t finite = 0;
  while (finite < count && std::isfinite(curve.losses[static_cast<size_t>(finite)])) ++finite;
  curve.smoothed.clear();
  curve.steepest.reset();
  curve.lowest = 0;
  const int64_t reach = std::max<int64_t>(2, finite / 20);
  for (int64_t i = 0; i < finite; ++i) {
    double sum = 0, weights = 0;
    for (int64_t j = std::max<int64_t>(0, i - reach); j <= std::min(finite - 1, i + reach); ++j) {
      const auto weight = static_cast<double>(reach + 1 - std::abs(i - j));
      sum += weight * curve.losses[static_cast<size_t>(j)];
      weights += weight;
    }
    curve.smoothed.push_back(sum / weights);
  }
  if (finite == 0) return;
  const auto lowest = std::min_element(curve.smoothed.begin(), curve.smoothed.end());
  curve.lowest = static_cast<size_t>(lowest - curve.smoothed.begin());
  double steepest = 0;  // only negative slopes descend
  for (int64_t at = reach; at <= static_cast<int64_t>(curve.lowest) && at + reach < finite; ++at) {
    const double present = slope(curve, at, reach);
    if (present >= steepest) continue;
    steepest = present;
    curve.steepest = static_cast<size_t>(at);
  }
}

LearningRateCurve find_learning_rate(Config& config, const LearningRateRange& range,
                                     const std::function<void(int64_t, double, double)>& step) {
  check(range);
  ProcessGroup& group = single_process();
  const Autocast autocast(rounding_of(config.train.precision));
  Rng rng(static_cast<uint64_t>(config.train.seed));
  const std::unique_ptr<Module> model = new_model(config, rng);
  rng.advance();  // tick 0 made the weights, as in training
  Optimizer optimizer(*model, config.train.optimizer);
  RunState state;
  steps_of(config);  // fails where the data make no batch
  BatchStream batches(config, group, state, false);
  const TrainCallbacks none;
  Progress quiet;
  quiet.quiet = true;
  const auto passes = make_forward_backward(config, *model, optimizer, rng, group, none, quiet);

  LearningRateCurve curve;
  double mean = 0, lowest = INFINITY;
  while (state.step < range.steps && !curve.diverged) {
    const double rate = rate_of(range, state.step);
    StepBatches some = batches.next(range.steps - state.step);
    ++state.step;
    const std::vector<Tensor> losses = passes->run({state.step, *model, group}, some, state.step == 1);
    std::vector<double> numbers;
    for (const Tensor& one : losses) numbers.push_back(one.item());
    const double loss = passes->loss_of(some, numbers);
    optimizer.step(rate, losses);
    rng.advance();
    curve.rates.push_back(rate);
    curve.losses.push_back(loss);
    if (step) step(state.step, rate, loss);
    // Bias correction: the running mean starts from 0.
    mean = mean_decay * mean + (1 - mean_decay) * loss;
    const double present = mean / (1 - std::pow(mean_decay, static_cast<double>(state.step)));
    lowest = std::min(lowest, present);
    curve.diverged = !std::isfinite(loss) || (lowest > 0 && present > range.divergence * lowest);
  }
  analyse(curve);
  return curve;
}

double learning_rate_for_peak(const Config& config, double rate) {
  const Schedule& schedule = config.train.schedule;
  if (schedule.kind != ScheduleKind::noam) return rate;
  // The factor is proportional to the peak, at the end of the warm-up.
  Schedule of_one = schedule;
  of_one.learning_rate = 1;
  const int64_t peak = std::max<int64_t>(schedule.warmup_steps, 1);
  return rate / of_one.at(peak, 2 * peak, config.model.d_model);
}

}  // namespace heed
