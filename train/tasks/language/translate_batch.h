// The tensors of a batch of sentence pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/batching/batch.h"
#include "heed/data/batching/padded_batches.h"
#include "heed/nn/attention.h"

namespace heed {

/// A batch of [0] source ids, [1] source lengths, [2] decoder input, [3] targets, which are the target tokens
/// without padding, filled up by -1, and [4] the positions of these in the padded target rows. With
/// `carries_packing` there follow [5] and [6], the Packing::table() of sources and of targets; then targets
/// that fill up are padding of the last sentences, in its place.
Batch translation_batch(const PairBatch& pairs, bool carries_packing);

/// `context` with the tables of a translation_batch(), if it carries them.
ForwardContext with_packing(const ForwardContext& context, const Batch& batch);

/// The targets of a translation_batch() that are tokens. The host reads them.
struct RealTargets {
  Tensor rows;                        ///< i32 [n]: their indices among all targets, ascending
  Tensor targets;                     ///< i32 [n]
  std::vector<int64_t> of_sentences;  ///< how many each sentence has
};
RealTargets real_targets(const Batch& batch);  ///< of a translation_batch()

}  // namespace heed
