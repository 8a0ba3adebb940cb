// Edit distance, and the word and character error rates that are made of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace heed {

/// Fewest insertions, deletions and substitutions that turn one sequence into the other (Levenshtein 1966).
int64_t edit_distance(std::span<const int64_t> from, std::span<const int64_t> to);

/// Errors counted over a corpus.
struct ErrorRate {
  int64_t edits = 0;
  int64_t reference_length = 0;
  /// Edits for each unit of the references: 0 is perfect, and it may pass 1. Against empty references 0
  /// without edits and 1 with them.
  double rate() const;
};

/// Word error rate: units are runs of characters between white space. A usage Error when the numbers of
/// sentences differ, here and below.
ErrorRate word_error_rate(std::span<const std::string> outputs, std::span<const std::string> references);

/// Character error rate: units are code points, white space included.
ErrorRate character_error_rate(std::span<const std::string> outputs, std::span<const std::string> references);

}  // namespace heed
