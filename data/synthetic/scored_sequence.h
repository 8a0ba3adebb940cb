// ScoredSequence: a generated sequence of tokens with what a model must predict at each place.
#pragma once

#include <cstdint>
#include <vector>

namespace heed {

/// The target of a place where nothing is asked.
inline constexpr int32_t not_scored = -1;

/// A sequence of tokens and its targets.
struct ScoredSequence {
  std::vector<int32_t> tokens;   ///< [T]
  std::vector<int32_t> targets;  ///< [T]: what a model that has read the place must predict, or not_scored

  /// Appends a token and the target of its place.
  void add(int64_t token, int64_t target = not_scored) {
    tokens.push_back(static_cast<int32_t>(token));
    targets.push_back(static_cast<int32_t>(target));
  }
};

}  // namespace heed
