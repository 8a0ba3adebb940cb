// Edit distance, word error rate and character error rate.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace heed {

/// The least number of insertions, deletions and substitutions from one sequence to another (Levenshtein
/// 1966).
int64_t edit_distance(std::span<const int64_t> from, std::span<const int64_t> to);

/// Errors summed over a corpus.
struct ErrorRate {
  int64_t edits = 0;             ///< insertions, deletions and substitutions
  int64_t reference_length = 0;  ///< units of all references
  /// Edits per unit of the references: 0 is perfect, above 1 is possible. With empty references 0 without
  /// edits, else 1.
  double rate() const;
};

/// Word error rate: words are separated by white space. A usage error when the numbers of sentences differ.
ErrorRate word_error_rate(std::span<const std::string> outputs, std::span<const std::string> references);

/// Character error rate: units are code points, white space included. A usage error when the numbers of
/// sentences differ.
ErrorRate character_error_rate(std::span<const std::string> outputs, std::span<const std::string> references);

}  // namespace heed
