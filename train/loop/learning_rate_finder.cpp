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

/// Fails for an illegal range.
void check(const LearningRateRange& range) {
  if (!(range.from > 0 && range.from < range.to && std::isfinite(range.to)))
    fail(range_name(), ": the rates go from ", range.from, " to ", range.to,
         ". The first must be above 0 and the last above the first.");
  if (range.steps < 10 || range.steps > 100000)
    fail(range_name(), ": steps = ", range.steps, ". It must be 10 to 100000.");
  if (!(range.divergence > 1))
    fail(range_name(), ": divergence is ", range.divergence, ". It must be above 1.");
}

/// The learning rate of a step, counted from 0: it rises exponentially.
double rate_of(const LearningRateRange& range, int64_t step) {
  const double fraction = static_cast<double>(step) / static_cast<double>(range.steps - 1);
  return range.from * std::pow(range.to / range.from, fraction);
}

/// The slope of the smoothed loss at a step, per decade of the rate: a central difference over `reach` steps.
double slope(const LearningRateCurve& curve, int64_t step, int64_t reach) {
  const auto before = static_cast<size_t>(step - reach), after = static_cast<size_t>(step + reach);
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
  int64_t num_finite = 0;
  while (num_finite < count && std::isfinite(curve.losses[static_cast<size_t>(num_finite)])) ++num_finite;
  curve.smoothed.clear();
  curve.steepest.reset();
  curve.lowest = 0;
  const int64_t reach = std::max<int64_t>(2, num_finite / 20);  // neighbours on each side
  for (int64_t i = 0; i < num_finite; ++i) {
    double sum = 0, weights = 0;
    for (int64_t j = std::max<int64_t>(0, i - reach); j <= std::min(num_finite - 1, i + reach); ++j) {
      const auto weight = static_cast<double>(reach + 1 - std::abs(i - j));
      sum += weight * curve.losses[static_cast<size_t>(j)];
      weights += weight;
    }
    curve.smoothed.push_back(sum / weights);
  }
  if (num_finite == 0) return;
  const auto lowest = std::min_element(curve.smoothed.begin(), curve.smoothed.end());
  curve.lowest = static_cast<size_t>(lowest - curve.smoothed.begin());
  double min_slope = 0;  // only negative slopes descend
  for (int64_t i = reach; i <= static_cast<int64_t>(curve.lowest) && i + reach < num_finite; ++i) {
    const double slope_here = slope(curve, i, reach);
    if (slope_here >= min_slope) continue;
    min_slope = slope_here;
    curve.steepest = static_cast<size_t>(i);
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
  Optimizer optimizer(*model, config.optimizer_options());
  RunState state;
  steps_of(config);  // fails where the data make no batch
  constexpr bool may_prefetch = false;
  BatchStream batches(config, group, state, may_prefetch);
  const TrainCallbacks none;
  Progress quiet;
  quiet.quiet = true;
  const auto passes = make_forward_backward(config, *model, optimizer, rng, group, none, quiet);

  LearningRateCurve curve;
  double mean = 0, lowest = INFINITY;
  while (state.step < range.steps && !curve.diverged) {
    const double rate = rate_of(range, state.step);
    StepBatches step_batches = batches.next(range.steps - state.step);
    ++state.step;
    const std::vector<Tensor> losses =
        passes->run({state.step, *model, group}, step_batches, state.step == 1);
    std::vector<double> numbers;
    for (const Tensor& batch_loss : losses) numbers.push_back(batch_loss.item());
    const double loss = passes->loss_of(step_batches, numbers);
    optimizer.step(rate, losses);
    rng.advance();
    curve.rates.push_back(rate);
    curve.losses.push_back(loss);
    if (step) step(state.step, rate, loss);
    mean = mean_decay * mean + (1 - mean_decay) * loss;
    // Bias correction: the running mean starts from 0.
    const double corrected_mean = mean / (1 - std::pow(mean_decay, static_cast<double>(state.step)));
    lowest = std::min(lowest, corrected_mean);
    curve.diverged = !std::isfinite(loss) || (lowest > 0 && corrected_mean > range.divergence * lowest);
  }
  analyse(curve);
  return curve;
}

double learning_rate_for_peak(const Config& config, double rate) {
  const Schedule& schedule = config.train.schedule;
  if (schedule.kind != ScheduleKind::noam) return rate;
  // The peak, at the end of the warm-up, is proportional to the factor.
  Schedule with_factor_1 = schedule;
  with_factor_1.learning_rate = 1;
  const int64_t peak = std::max<int64_t>(schedule.warmup_steps, 1);
  return rate / with_factor_1.at(peak, 2 * peak, config.model.d_model);
}

}  // namespace heed
