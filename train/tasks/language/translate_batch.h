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
/// The packed sources have room for `min_source_tokens`, which makes equal rows of all shards of a batch.
Batch translation_batch(const PairBatch& pairs, bool carries_packing, int64_t min_source_tokens = 0);

/// The sum of the lengths.
int64_t tokens_of(const Rows& side);

/// The step of packed_rows() for sources of so many padded rows: at most eight numbers of rows for a shape.
int64_t source_row_step(int64_t padded_rows);

/// `context` with the tables of a translation_batch(), if it carries them.
ForwardContext with_packing(const ForwardContext& context, const Batch& batch);

/// Targets that are tokens, read by the host.
struct RealTargets {
  Tensor rows;                        ///< i32 [n]: their indices among all targets, ascending
  Tensor targets;                     ///< i32 [n]
  std::vector<int64_t> of_sentences;  ///< how many each sentence has
};
/// The targets of a translation_batch() that are tokens.
RealTargets real_targets(const Batch& batch);

}  // namespace heed
