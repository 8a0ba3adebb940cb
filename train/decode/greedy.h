// Greedy decoding: the most probable token, step by step.
#pragma once

#include "heed/train/decode/next_token_scores.h"

namespace heed {

/// Decodes all rows at once by the most probable token of each step; finished rows leave the batch.
/// max_lengths[i] is the maximum number of tokens of row i.
std::vector<Hypothesis> greedy(const AutoregressiveModel& model, Decoding state,
                               const std::vector<int64_t>& max_lengths, const DecodeIds& ids);

}  // namespace heed
