// Named scores of a model, and which of two models is better by them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// Named scores; the first one decides which checkpoint is best.
struct Scores {
  std::vector<std::pair<std::string, double>> list;  ///< name and value, in the order of the log
  bool lower_is_better = true;                       ///< whether a lower first score is the better one
  /// The value of the first score. Fails where there is none.
  double first() const {
    if (list.empty()) fail("scores: there are none, since no validation took place.");
    return list.front().second;
  }
  /// The value of a score; none where there is no score of this name.
  std::optional<double> find(const std::string& name) const;
  /// Compares first scores; NaN is worse than any number. Where they are equal, as accuracies over few
  /// examples often are, the score "loss" decides, if both have one.
  bool better_than(const Scores& other) const;
};

/// The value that a predictor without training gets in a score.
struct ScoreBaseline {
  std::string score;     ///< the score's name, as in Scores
  std::string baseline;  ///< what the predictor does: "majority"
  double value = 0;      ///< in the unit of the score
};

}  // namespace heed
