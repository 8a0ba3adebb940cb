// Learning rate schedules.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <optional>

#include "heed/nn/options.h"

namespace heed {

/// The shape of a schedule.
enum class ScheduleKind { constant, noam, rsqrt, cosine, linear, one_cycle, wsd };

/// The shape of the last part of wsd, from the peak down to min_lr_ratio of it.
enum class DecayShape { linear, one_minus_sqrt };

/// The learning rate of each step, with a linear warmup.
struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;     ///< the shape after the warmup
  double learning_rate = 1e-3;                  ///< peak; for noam the factor before width^-0.5
  int64_t warmup_steps = 100;                   ///< steps
  double min_lr_ratio = 0;                      ///< last rate as a fraction of the peak (cosine, linear, wsd)
  double decay_share = 0.2;                     ///< wsd: share of all steps in which the rate falls
  DecayShape decay_shape = DecayShape::linear;  ///< wsd: how it falls
  bool cycle_momentum = false;                  ///< one_cycle moves the optimizer's momentum, too
  /// The learning rate of step 1 <= t <= total, in place of all above; programs alone can set it. Resuming
  /// calls it for the steps that are left: give the same one.
  std::function<double(int64_t t, int64_t total)> rate_of_step = {};

  /// Names every field with its help: settings of [train].
  void fields(Fields& f) {
    f("schedule", Choice(kind, {"constant", "noam", "rsqrt", "cosine", "linear", "one_cycle", "wsd"}),
      "how the learning rate moves; linear falls to min_lr_ratio of the peak, to zero where that is 0; wsd: "
      "warm-up, a constant rate, then a fall in the last steps");
    f("learning_rate", learning_rate, "peak learning rate; for noam the factor before width^-0.5");
    f("warmup_steps", warmup_steps, {0, max_integer}, "steps of linear warm-up");
    f("min_lr_ratio", min_lr_ratio, "share of the peak at the last step, for cosine, linear and wsd");
    f("decay_share", decay_share, "wsd: share of all steps in which the rate falls, the last ones");
    f("decay_shape", Choice(decay_shape, {"linear", "one_minus_sqrt"}), "wsd: how the rate falls");
    f("cycle_momentum", cycle_momentum,
      "one_cycle moves beta1, or the momentum of sgd, from 0.95 to 0.85 at the peak and back");
  }

  /// The learning rate of step 1 <= t <= total. noam: Vaswani et al. 2017, equation 3. rsqrt: the same shape
  /// with peak `learning_rate`. one_cycle: Smith and Topin 2019 with linear legs, from rate / 25 at step 1 up
  /// to `learning_rate` at step warmup_steps, then down to rate / 250,000: the rates of PyTorch's OneCycleLR.
  /// wsd (warm-up, stable, decay): Hu et al. 2024, arXiv 2404.06395; both shapes: Haegele et al. 2024, arXiv
  /// 2405.18392.
  double at(int64_t t, int64_t total, int64_t width) const {
    if (rate_of_step) return checked(rate_of_step(t, total), t, total);
    const double step = static_cast<double>(t);
    const double ramp = static_cast<double>(std::max<int64_t>(warmup_steps, 1));
    const double rise = std::min(1.0, step / ramp);
    const double left = std::max(static_cast<double>(total) - ramp, 1.0);
    const double done = std::clamp((step - ramp) / left, 0.0, 1.0);
    switch (kind) {
      case ScheduleKind::constant:
        return warmup_steps > 0 ? learning_rate * rise : learning_rate;
      case ScheduleKind::noam:
        return learning_rate / std::sqrt(static_cast<double>(width)) *
               std::min(1 / std::sqrt(step), step / (ramp * std::sqrt(ramp)));
      case ScheduleKind::rsqrt:
        return learning_rate * std::min(rise, std::sqrt(ramp / step));
      case ScheduleKind::cosine:
        if (step < ramp) return learning_rate * rise;
        return learning_rate *
               (min_lr_ratio + (1 - min_lr_ratio) * 0.5 * (1 + std::cos(std::numbers::pi * done)));
      case ScheduleKind::linear:
        if (step < ramp) return learning_rate * rise;
        return learning_rate * (1 - (1 - min_lr_ratio) * done);
      case ScheduleKind::one_cycle:
        if (step < ramp) return learning_rate * (1.0 / 25 + (1 - 1.0 / 25) * cycle_rise(t));
        return learning_rate * (1 - done) + learning_rate / 250000 * done;
      case ScheduleKind::wsd:
        return learning_rate * rise * (1 - (1 - min_lr_ratio) * fallen(step, static_cast<double>(total)));
    }
    return learning_rate;
  }

  /// The momentum (beta1 of Adam) of step 1 <= t <= total; empty where the schedule does not move it. Smith
  /// and Topin 2019: high where the rate is low.
  std::optional<double> momentum(int64_t t, int64_t total) const {
    constexpr double high = 0.95, low = 0.85;
    if (kind != ScheduleKind::one_cycle || !cycle_momentum) return {};
    const double ramp = static_cast<double>(std::max<int64_t>(warmup_steps, 1)),
                 step = static_cast<double>(t);
    if (step < ramp) return high + (low - high) * cycle_rise(t);
    const double left = std::max(static_cast<double>(total) - ramp, 1.0);
    return low + (high - low) * std::clamp((step - ramp) / left, 0.0, 1.0);
  }

 private:
  static double checked(double rate, int64_t t, int64_t total) {
    if (rate >= 0 && std::isfinite(rate)) return rate;
    fail("schedule: rate_of_step(", t, ", ", total, ") gives ", rate,
         ". A learning rate must be at least 0 and finite.");
  }
  /// The share of the way down that wsd has gone: 0 before the last decay_share of the steps, 1 at the last.
  double fallen(double step, double total) const {
    const double decay_steps = std::max(total * decay_share, 1.0);
    const double done = std::clamp((step - (total - decay_steps)) / decay_steps, 0.0, 1.0);
    return decay_shape == DecayShape::linear ? done : std::sqrt(done);
  }
  /// The share of the way up that one_cycle has gone at step t of its warmup: 0 at step 1, 1 at its last one.
  double cycle_rise(int64_t t) const {
    return static_cast<double>(t - 1) / static_cast<double>(std::max<int64_t>(warmup_steps - 1, 1));
  }
};

}  // namespace heed
