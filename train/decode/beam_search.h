// Beam search: the best of several hypotheses, by log probability and a length penalty.
#pragma once

#include "heed/train/config/config.h"
#include "heed/train/decode/next_token_scores.h"

namespace heed {

/// Searches for each row the best of `options.beam_size` finished hypotheses, by log probability over
/// ((5 + length) / 6)^alpha (Wu et al. 2016, arXiv 1609.08144, equation 14). max_lengths[i] is the maximum
/// number of tokens of row i.
std::vector<Hypothesis> beam_search(const AutoregressiveModel& model, Decoding state,
                                    const std::vector<int64_t>& max_lengths, const DecodeIds& ids,
                                    const DecodeOptions& options);

}  // namespace heed
