// Chooses the tokens of a batch that the model must predict.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// Hiding::drawn for scoring, so that each scoring hides equal tokens.
constexpr uint64_t drawn_for_scores = ~uint64_t{0};

/// Token ids of several inputs.
struct TokenRows {
  std::span<int32_t> ids;        ///< [inputs, columns], padded at the end
  int64_t columns = 0;           ///< tokens of the longest input
  std::vector<int64_t> lengths;  ///< real tokens of each input, at least 1
  std::vector<int64_t> names;    ///< a unique number of each input, independent of its batch
};

/// The tokens to predict.
struct AskedTokens {
  std::vector<int32_t> rows;    ///< positions: input times columns plus column; ascending
  std::vector<int32_t> tokens;  ///< the targets
};

/// How to hide tokens.
struct Hiding {
  double share = 0.5;  ///< fraction of each input's tokens, rounded; at least one is hidden
  int32_t hidden = 0;  ///< the id that replaces them
  uint64_t seed = 1;   ///< seed of the run
  uint64_t drawn = 0;  ///< another number hides other tokens: the epoch
};

/// The number of tokens that are hidden of an input of `length` tokens: at least one.
int64_t num_hidden(int64_t length, double share);

/// Hides tokens and returns them as targets. Which ones is a pure function of (seed, drawn, name, length),
/// independent of the rest of the batch and of threads.
AskedTokens hide_tokens(TokenRows& inputs, const Hiding& hiding);

/// Each token's target is the next one. In a batch of inputs of one token, the first token is its own target,
/// so that there is a loss.
AskedTokens next_tokens(const TokenRows& inputs);

/// Counts the tokens to predict of each input: AskedTokens::rows i32 [n] of `inputs` inputs of `columns`
/// columns.
std::vector<int64_t> asked_of_each(const Tensor& rows, int64_t inputs, int64_t columns);

}  // namespace heed
