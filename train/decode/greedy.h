// Greedy decoding: the most probable token, step by step.
#pragma once

#include <optional>

#include "heed/train/decode/next_token_scores.h"

namespace heed {

/// Settings of greedy decoding.
struct GreedyOptions {
  int64_t max_new_tokens = 500;                ///< maximum number of tokens that are made
  std::vector<int32_t> stop_tokens = {};       ///< tokens that end an output, and are no part of it
  std::vector<int32_t> forbidden_tokens = {};  ///< tokens that are never made: padding, unknown
  /// A maximum for each prompt, in place of max_new_tokens; empty: all have the same.
  std::vector<int64_t> max_new_tokens_of_each = {};
};

/// Continues a prompt by the most probable token of each step, and returns the new tokens. Any model that
/// implements AutoregressiveModel will do. Without `state` it begins at model.start(), and a sequence that
/// outgrows model.max_length() is cut to its newest half; with one, such as model.start(encoded, lengths) of
/// a translator, it ends there. Negative stop tokens are none. Fails for an empty prompt, illegal options and
/// ids outside the vocabulary.
std::vector<int32_t> greedy(const AutoregressiveModel& model, const std::vector<int32_t>& prompt,
                            const GreedyOptions& options = {}, std::optional<Decoding> state = {});

/// greedy() for several prompts at once, which may differ in length. Each output has its log probability.
std::vector<Hypothesis> greedy_batch(const AutoregressiveModel& model,
                                     const std::vector<std::vector<int32_t>>& prompts,
                                     const GreedyOptions& options = {}, std::optional<Decoding> state = {});

}  // namespace heed
