// Finds two keys with their values in a sequence and swaps the keys.
#include "heed/data/synthetic/key_swap.h"

#include <algorithm>
#include <utility>

namespace heed {
namespace {

/// The places before `end` at which a key stands in front of its value.
std::vector<int64_t> places_of_pair(const std::vector<int32_t>& tokens, int32_t key, int32_t value,
                                    int64_t end) {
  std::vector<int64_t> out;
  for (int64_t place = 0; place + 1 < end; ++place) {
    const auto at = static_cast<size_t>(place);
    if (tokens[at] == key && tokens[at + 1] == value) out.push_back(place);
  }
  return out;
}

/// All scored places: those before `question` from the last to the first, then those behind it.
std::vector<int64_t> others_of(const ScoredSequence& sequence, int64_t question) {
  std::vector<int64_t> out;
  const auto length = std::ssize(sequence.targets);
  const auto is_scored = [&](int64_t place) {
    return sequence.targets[static_cast<size_t>(place)] != not_scored;
  };
  for (int64_t place = question - 1; place >= 0; --place)
    if (is_scored(place)) out.push_back(place);
  for (int64_t place = question + 1; place < length; ++place)
    if (is_scored(place)) out.push_back(place);
  return out;
}

}  // namespace

std::optional<KeySwap> key_swap(const ScoredSequence& sequence) {
  const auto token = [&](int64_t place) { return sequence.tokens[static_cast<size_t>(place)]; };
  const auto target = [&](int64_t place) { return sequence.targets[static_cast<size_t>(place)]; };
  KeySwap out{.tokens = sequence.tokens, .swapped = sequence.tokens};
  out.question = std::ssize(sequence.targets) - 1;
  while (out.question >= 0 && target(out.question) == not_scored) --out.question;
  if (out.question < 0) return {};
  const int32_t key = token(out.question);
  out.answer = target(out.question);
  const std::vector<int64_t> own = places_of_pair(out.tokens, key, out.answer, out.question);
  if (own.empty()) return {};
  for (const int64_t other : others_of(sequence, out.question)) {
    const int32_t other_key = token(other);
    out.other_answer = target(other);
    if (other_key == key || out.other_answer == out.answer) continue;
    const std::vector<int64_t> places = places_of_pair(out.tokens, other_key, out.other_answer, out.question);
    if (places.empty()) continue;
    for (const int64_t place : own) out.swapped[static_cast<size_t>(place)] = other_key;
    for (const int64_t place : places) out.swapped[static_cast<size_t>(place)] = key;
    out.keys = own;
    out.keys.insert(out.keys.end(), places.begin(), places.end());
    std::ranges::sort(out.keys);
    for (const int64_t place : out.keys) out.values.push_back(place + 1);
    return out;
  }
  return {};
}

}  // namespace heed
