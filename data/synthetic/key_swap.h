// KeySwap: a sequence of keys and values, and the same with two keys swapped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "heed/data/synthetic/scored_sequence.h"

namespace heed {

/// A sequence in which a key is asked for at its last scored place, and a counterpart in which that key and
/// another one are swapped wherever they stand before their values: the same question has another answer.
struct KeySwap {
  std::vector<int32_t> tokens{};   ///< [T]: the sequence
  std::vector<int32_t> swapped{};  ///< [T]: with the two keys swapped in front of their values
  int64_t question = 0;            ///< place of the question: the asked key stands there in both
  int32_t answer = 0;              ///< value of the asked key in `tokens`
  int32_t other_answer = 0;        ///< its value in `swapped`
  std::vector<int64_t> keys{};     ///< places before the question where they differ
  std::vector<int64_t> values{};   ///< the places behind these, where the values stand
};

/// The swap of a sequence whose values stand behind their keys. The other key is the last one asked
/// before the question, or else behind it, that has stood before the question in front of another value.
/// Empty where a key was not seen in front of its value, or there is no other.
std::optional<KeySwap> key_swap(const ScoredSequence& sequence);

}  // namespace heed
