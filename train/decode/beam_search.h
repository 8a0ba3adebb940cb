// Beam search: the best of several hypotheses, by log probability and a length penalty.
#pragma once

#include <optional>

#include "heed/train/config/config.h"
#include "heed/train/decode/next_token_scores.h"

namespace heed {

/// Settings of beam search.
struct BeamOptions {
  int64_t beam_size = 4;                       ///< number of hypotheses kept, 1 to 1000
  double length_penalty = 1;                   ///< alpha of ((5 + length) / 6)^alpha; 0: the sum alone counts
  BeamRules rules = BeamRules::wu;             ///< see beam_search()
  int64_t max_new_tokens = 500;                ///< maximum number of tokens that are made
  std::vector<int32_t> stop_tokens = {};       ///< tokens that end an output, and are no part of it
  std::vector<int32_t> forbidden_tokens = {};  ///< tokens that are never made: padding, unknown
  /// A maximum for each prompt, in place of max_new_tokens; empty: all have the same.
  std::vector<int64_t> max_new_tokens_of_each = {};
};

/// Continues a prompt by the best of `options.beam_size` finished hypotheses, by log probability over
/// ((5 + length) / 6)^alpha (Wu et al. 2016, arXiv 1609.08144, equation 14), and returns the new tokens; the
/// length is theirs. By the rules of Transformers 5 the divisor is length^alpha, with the stop token in the
/// length; a hypothesis ends only where its stop token is among the beam_size best continuations; forbidden
/// tokens keep their share of the probability, except with BeamRules::transformers_renormalized; and the
/// search ends when beam_size hypotheses are finished and the best unfinished one, at its present length, is
/// not above the worst of these. Any model that implements AutoregressiveModel will do. Without `state` it
/// begins at model.start(); a translator gives model.start(encoded, lengths). Outputs end where prompt and
/// output reach model.max_length(). Negative stop tokens are none. Fails for an empty prompt, one that is too
/// long for the model, illegal options and ids outside the vocabulary.
std::vector<int32_t> beam_search(const AutoregressiveModel& model, const std::vector<int32_t>& prompt,
                                 const BeamOptions& options = {}, std::optional<Decoding> state = {});

/// beam_search() for several prompts at once, which may differ in length. Each output has its score.
std::vector<Hypothesis> beam_search_batch(const AutoregressiveModel& model,
                                          const std::vector<std::vector<int32_t>>& prompts,
                                          const BeamOptions& options = {},
                                          std::optional<Decoding> state = {});

}  // namespace heed
