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
  double divergence = 4;  ///< the test ends where the mean loss is this many times the lowest one so far
};

/// The result of a range test.
struct LearningRateCurve {
  std::vector<double> rates;     ///< learning rate of each step
  std::vector<double> losses;    ///< loss of each step; the last one may not be finite
  std::vector<double> smoothed;  ///< centred weighted mean of each loss and its neighbours
  bool diverged = false;         ///< whether the test ended before the last step
  std::optional<size_t>
      steepest;       ///< index of the step where the smoothed loss falls fastest per decade of the rate
  size_t lowest = 0;  ///< index of the step where the smoothed loss is lowest

  /// The suggested rate: that of the step `steepest`; none where the loss never fell.
  std::optional<double> suggestion() const;
};

/// Trains a fresh model on the first batches, one step for each rate, and writes nothing. The task must be
/// loaded. Calls `step` after each step with its number, from 1, rate and loss. A usage error for an illegal
/// range.
LearningRateCurve find_learning_rate(Config& config, const LearningRateRange& range = {},
                                     const std::function<void(int64_t, double, double)>& step = {});

/// Fills smoothed, steepest and lowest from rates and losses.
void analyse(LearningRateCurve& curve);

/// The setting train.learning_rate with which the schedule's peak is this rate: the rate itself, except for
/// noam, whose setting is a factor.
double learning_rate_for_peak(const Config& config, double rate);

}  // namespace heed
