// Names of scores, as people read them.
#pragma once

#include <string>

namespace heed {

/// "bits per byte" for bits_per_byte, "validation accuracy" for valid_accuracy, "accuracy of the last step"
/// for last_accuracy.
std::string score_name(const std::string& key);

/// The most that a score can be: 1 for an accuracy, 100 for BLEU; infinity where there is none.
double score_most(const std::string& key);

}  // namespace heed
