// What little knowledge scores, in words and for files: no score is read well without it.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "train/task.h"

namespace heed {

/// What the score of this name stands beside: "majority 0.172", "root operator 0.357". Empty where nothing is
/// known.
std::vector<std::string> known_words(const Task& task, const std::string& score);

/// Sets `anchors`, by score and then by what is known: {"accuracy": {"majority": 0.1725}}. Where nothing is
/// known, sets nothing.
void put_known(Json& into, const Task& task);

}  // namespace heed
