// ScoredAttention, rung 2: softmax of a score; a variant overrides score() and, if needed, weigh().
#pragma once

#include "heed/attention/base/multi_head_attention.h"

namespace heed {

/// Attention by a map: weights over keys, computed from a score for each pair of query and key.
class ScoredAttention : public MultiHeadAttention {
 public:
  using MultiHeadAttention::MultiHeadAttention;  ///< projections and modifiers as in MultiHeadAttention
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<KeyValueCache>(); }
  bool modifies_scores() const override { return true; }

 protected:
  /// q [B, H, Tq, d], k [B, H, Tk, d] -> scores [B, H, Tq, Tk], unmasked.
  virtual Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const = 0;
  /// Masked scores -> weights, both [B, H, Tq, Tk]: the softmax of each row unless overridden.
  virtual Tensor weigh(const Tensor& scores, const Tensor& q, const AttentionInput& input) const;

  Tensor attend(Heads heads, const AttentionInput& input) override;
  /// Attends by computing the map, after read_cache().
  Tensor attend_by_map(const Heads& heads, const AttentionInput& input, int64_t first_query);
  /// The map [B, H, Tq, Tk], with dropout, times the values (and shaw's value vectors) -> [B, H, Tq, dv].
  Tensor applied(const Tensor& map, const Heads& heads, const AttentionInput& input,
                 int64_t first_query) const;
  /// The position of the first query of scores [B, H, Tq, Tk], as in Mask::dense(); for weigh().
  int64_t first_position(const Tensor& scores, const AttentionInput& input) const;
  /// The map before dropout, as a MapRecorder gets it. first_query as in Mask::dense().
  Tensor weights(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
};

}  // namespace heed
