// Baselines of scores, as text and JSON: scores are only meaningful next to them.
#pragma once

#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The baselines of a score: "majority 0.172", "root operator 0.357". Empty when there are none.
std::vector<std::string> baseline_words(const Task& task, const std::string& score);

/// Sets `baselines`, by score, then by baseline: {"accuracy": {"majority": 0.1725}}. Sets nothing when there
/// are no baselines.
void put_known(Json& into, const Task& task);

}  // namespace heed
