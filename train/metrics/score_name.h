// Display names and bounds of scores.
#pragma once

#include <string>

namespace heed {

/// The display name: "bits per byte" for bits_per_byte, "validation accuracy" for valid_accuracy, "accuracy
/// of the last step" for last_accuracy.
std::string score_name(const std::string& key);

/// The largest possible value of a score: 1 for an accuracy, 100 for BLEU; infinity when unbounded.
double max_score(const std::string& key);

}  // namespace heed
