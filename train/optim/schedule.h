// Learning rates over the steps of a run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "nn/fields.h"

namespace heed {

enum class ScheduleKind { constant, noam, rsqrt, cosine, linear, one_cycle };

/// The learning rate of each step, after a linear warm-up.
struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double rate = 1e-3;      ///< the peak; for noam the factor before width^-0.5
  int64_t warmup = 100;    ///< steps
  double final_share = 0;  ///< of the peak, at the last step (cosine, linear)

  void fields(Fields& f) {
    f("schedule", Choice(kind, {"constant", "noam", "rsqrt", "cosine", "linear", "one_cycle"}),
      "how the learning rate moves");
    f("rate", rate, "peak learning rate; for noam the factor before width^-0.5");
    f("warmup", warmup, "steps of linear warm-up");
    f("final_share", final_share, "share of the peak at the last step, for cosine and linear");
  }

  /// The rate of step 1 <= t <= total. noam: Vaswani et al. 2017, equation 3. rsqrt: its shape with `rate` as
  /// the peak. one_cycle: Smith and Topin 2019 with linear legs, from rate / 25 up and down to rate /
  /// 250,000.
  double at(int64_t t, int64_t total, int64_t width) const {
    const double step = static_cast<double>(t);
    const double ramp = static_cast<double>(std::max<int64_t>(warmup, 1));
    const double rise = std::min(1.0, step / ramp);
    const double left = std::max(static_cast<double>(total) - ramp, 1.0);
    const double done = std::clamp((step - ramp) / left, 0.0, 1.0);
    switch (kind) {
      case ScheduleKind::constant:
        return warmup > 0 ? rate * rise : rate;
      case ScheduleKind::noam:
        return rate / std::sqrt(static_cast<double>(width)) *
               std::min(1 / std::sqrt(step), step / (ramp * std::sqrt(ramp)));
      case ScheduleKind::rsqrt:
        return rate * std::min(rise, std::sqrt(ramp / step));
      case ScheduleKind::cosine:
        if (step < ramp) return rate * rise;
        return rate * (final_share + (1 - final_share) * 0.5 * (1 + std::cos(std::numbers::pi * done)));
      case ScheduleKind::linear:
        if (step < ramp) return rate * rise;
        return rate * (1 - (1 - final_share) * done);
      case ScheduleKind::one_cycle:
        if (step < ramp) return rate * (1.0 / 25 + (1 - 1.0 / 25) * rise);
        return rate * (1 - done) + rate / 250000 * done;
    }
    return rate;
  }
};

}  // namespace heed
