// ScoredAttention, a base class: softmax of a score; a variant overrides score() and, if needed, weigh().
#pragma once

#include "heed/attention/base/multi_head_attention.h"

namespace heed {

/// Attention by a full map: the score of each pair of query and key becomes a weight, and the map times the
/// values is the output.
class ScoredAttention : public MultiHeadAttention {
 public:
  using MultiHeadAttention::MultiHeadAttention;
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<KeyValueCache>(); }
  bool modifies_scores() const override { return true; }

 protected:
  /// q [B, H, Tq, d], k [B, H, Tk, d] -> scores [B, H, Tq, Tk], unmasked.
  virtual Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const = 0;
  /// Formulas of a program for the scores and masks of one forward pass (docs/how-to/own-scores.md); by
  /// default none. The positions of queries are those among the keys. A formula of scores comes before the
  /// position biases.
  virtual PairFormulas formulas(const AttentionInput&) const { return {}; }
  /// Weights of masked scores, both [B, H, Tq, Tk]; by default the softmax of each row.
  virtual Tensor weigh(const Tensor& scores, const Tensor& q, const AttentionInput& input) const;

  Tensor attend(Heads heads, const AttentionInput& input) override;
  /// Attends by computing the map, after read_cache().
  Tensor attend_by_map(const Heads& heads, const AttentionInput& input, int64_t first_query);
  /// Multiplies a map [B, H, Tq, Tk], after dropout, with the values (and shaw's value vectors) -> [B, H, Tq,
  /// dv].
  Tensor apply_map(const Tensor& map, const Heads& heads, const AttentionInput& input,
                   int64_t first_query) const;
  /// The position of the first query of masked scores [B, H, Tq, Tk], for weigh().
  int64_t first_position(const Tensor& scores, const AttentionInput& input) const;
  /// The map before dropout; first_query is the position of the first query among the keys.
  Tensor weights(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
};

}  // namespace heed
