// Which tokens of a batch are to be predicted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace heed {

/// What Hiding::drawn is when scoring: the same tokens are hidden each time.
constexpr uint64_t drawn_for_scores = ~uint64_t{0};

/// Token ids of several inputs.
struct TokenRows {
  std::span<int32_t> ids;  ///< [inputs, columns], padded at the end
  int64_t columns = 0;
  std::vector<int64_t> lengths;  ///< real tokens of each, at least 1
  std::vector<int64_t> names;    ///< a number for each input that is its own wherever it stands
};

/// What is asked of a batch.
struct AskedTokens {
  std::vector<int32_t> rows;    ///< places among inputs times columns, rising
  std::vector<int32_t> tokens;  ///< the answers
};

/// What is hidden.
struct Hiding {
  double share = 0.5;  ///< of each input's tokens, rounded; at least one is
  int32_t hidden = 0;  ///< the id that is put in their place
  uint64_t seed = 1;
  uint64_t drawn = 0;  ///< another number hides others: the epoch
};

/// Hides tokens, and asks for them. Which ones is a function of (seed, drawn, name, length), whatever else is
/// in the batch and for any number of threads.
AskedTokens hide_tokens(TokenRows& inputs, const Hiding& hiding);

/// Asks at each token for the one behind it. In a batch where none has one behind it, the first token is
/// asked for itself, so that there is a loss.
AskedTokens next_tokens(const TokenRows& inputs);

/// How many of `rows` i32 [n] are in each of `inputs` rows of `columns`.
std::vector<int64_t> asked_of_each(const Tensor& rows, int64_t inputs, int64_t columns);

}  // namespace heed
