// Baselines of scores, as text and JSON: scores are only meaningful next to them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/metrics/scores.h"

namespace heed {

/// The baselines of one score as text: "majority 0.172", "root operator 0.357". Empty when there are none.
std::vector<std::string> baseline_words(std::span<const ScoreBaseline> baselines, const std::string& score);

/// Sets the key "baselines" of an object, by score, then by baseline: {"accuracy": {"majority": 0.1725}}.
/// Sets nothing when there are no baselines.
void set_baselines(Json& into, std::span<const ScoreBaseline> baselines);

}  // namespace heed
