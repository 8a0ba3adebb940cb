// A learning-rate range test: training while the rate rises, to see where the loss falls and where it
// diverges. Smith 2017, "Cyclical learning rates for training neural networks", arXiv 1506.01186,
// section 3.3.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/train/config/config.h"

namespace heed {

/// The range that is tested.
struct LearningRateRange {
  double from = 1e-7;     ///< rate of the first step
  double to = 1;          ///< rate of the last step; between them it rises exponentially
  int64_t steps = 100;    ///< at least 10
  double divergence = 4;  ///< the test ends where the loss is so many times the lowest one
};

/// What a range test has measured.
struct LearningRateCurve {
  std::vector<double> rates;       ///< of each step
  std::vector<double> losses;      ///< of each step; the last one may not be finite
  std::vector<double> smoothed;    ///< the mean of each loss and its neighbours, without a lag
  bool diverged = false;           ///< it ended before the last step
  std::optional<size_t> steepest;  ///< where the smoothed loss falls fastest per decade of the rate
  size_t lowest = 0;               ///< where the smoothed loss is lowest

  /// The suggested rate: that of the steepest descent; none where the loss never fell.
  std::optional<double> suggestion() const;
};

/// Trains a fresh model on the first batches, one step a rate, and writes nothing. The task is loaded. Calls
/// `step` after each with its number, from 1, rate and loss. A usage error for a range that is none.
LearningRateCurve find_learning_rate(Config& config, const LearningRateRange& range = {},
                                     const std::function<void(int64_t, double, double)>& step = {});

/// Fills smoothed, steepest and lowest from rates and losses.
void analyse(LearningRateCurve& curve);

/// The train.learning_rate at whose peak the schedule has this rate: the rate itself, but for noam, whose
/// learning_rate is a factor.
double learning_rate_for_peak(const Config& config, double rate);

}  // namespace heed
