// Greedy decoding: the most probable token, step by step.
#pragma once

#include "heed/train/decode/next_scores.h"

namespace heed {

/// Greedy decoding: the most probable token at each step, for all rows at once; finished rows leave the
/// batch. longest[i] is the maximum number of tokens of row i.
std::vector<Hypothesis> greedy(const AutoregressiveModel& model, Decoding state,
                               const std::vector<int64_t>& longest, const DecodeIds& ids);

}  // namespace heed
