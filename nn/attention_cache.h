// AttentionCache: the state of an attention between the steps of decoding.
#pragma once

#include "heed/nn/module.h"

namespace heed {

/// The state of an attention between the steps of decoding: a key-value cache, or the state of a linear
/// attention. fields() lists its tensors [B, ...], so that one visitor can move, reorder or detach any cache.
struct AttentionCache {
  int64_t length = 0;   ///< number of cached keys
  int64_t queries = 0;  ///< number of queries answered so far: the position of the next one
  virtual ~AttentionCache() = default;
  virtual void fields(Fields& f) = 0;  ///< names every tensor whose rows are sequences, [B, ...]
};

/// The number of sequences B of a cache; 0 while it is empty.
int64_t sequences_of(AttentionCache& cache);

/// The rows order[i] of x [B, ...] -> [B', ...], for a state between the steps of decoding. order: i32 [B'].
Tensor rows_in_order(const Tensor& x, const Tensor& order);

/// Sets row i of every cached tensor to its row order[i], as beam search reorders hypotheses. order: i32
/// [B'].
void reorder(AttentionCache& cache, const Tensor& order);

}  // namespace heed
