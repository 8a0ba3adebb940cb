// Learning rate schedules.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "heed/nn/options.h"

namespace heed {

/// The shape of a schedule.
enum class ScheduleKind { constant, noam, rsqrt, cosine, linear, one_cycle };

/// The learning rate of each step, with a linear warmup.
struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;  ///< the shape after the warmup
  double learning_rate = 1e-3;               ///< peak; for noam the factor before width^-0.5
  int64_t warmup_steps = 100;                ///< steps
  double min_lr_ratio = 0;                   ///< last rate as a fraction of the peak (cosine, linear)

  /// Names every field with its help: settings of [train].
  void fields(Fields& f) {
    f("schedule", Choice(kind, {"constant", "noam", "rsqrt", "cosine", "linear", "one_cycle"}),
      "how the learning rate moves");
    f("learning_rate", learning_rate, "peak learning rate; for noam the factor before width^-0.5");
    f("warmup_steps", warmup_steps, {0, max_integer}, "steps of linear warm-up");
    f("min_lr_ratio", min_lr_ratio, "share of the peak at the last step, for cosine and linear");
  }

  /// The learning rate of step 1 <= t <= total. noam: Vaswani et al. 2017, equation 3. rsqrt: the same shape
  /// with peak `learning_rate`. one_cycle: Smith and Topin 2019 with linear legs, from rate / 25 up to
  /// `learning_rate`, then down to rate / 250,000.
  double at(int64_t t, int64_t total, int64_t width) const {
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
        if (step < ramp) return learning_rate * (1.0 / 25 + (1 - 1.0 / 25) * rise);
        return learning_rate * (1 - done) + learning_rate / 250000 * done;
    }
    return learning_rate;
  }
};

}  // namespace heed
