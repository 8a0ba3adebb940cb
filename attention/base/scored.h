// Rung 2: softmax of a score; a variant overrides score(), perhaps weigh().
#pragma once

#include "attention/headed.h"

namespace heed {

/// A map of weights over keys, made from a score for each pair of query and key.
class ScoredAttention : public HeadedAttention {
 public:
  using HeadedAttention::HeadedAttention;
  std::unique_ptr<Memory> start() const override { return std::make_unique<KeyValueMemory>(); }
  bool modifies_scores() const override { return true; }

 protected:
  /// q [B, H, Tq, d], k [B, H, Tk, d] -> scores [B, H, Tq, Tk], unmasked.
  virtual Tensor score(const Tensor& q, const Tensor& k, const Attend& call) const = 0;
  /// Masked scores -> weights, both [B, H, Tq, Tk]. The softmax of each row, unless overridden.
  virtual Tensor weigh(const Tensor& scores, const Tensor& q, const Attend& call) const;

  Tensor attend(Heads heads, const Attend& call) override;
  /// The same once the memory has been recalled: by the map, written out.
  Tensor attend_by_map(const Heads& heads, const Attend& call, int64_t first_query);
  /// What a map [B, H, Tq, Tk] makes of the values, and of vectors that are added to them by distance; with
  /// dropout on the map.
  Tensor applied(const Tensor& map, const Heads& heads, const Attend& call, int64_t first_query) const;
  /// The position of the first query of these scores [B, H, Tq, Tk], for weigh(). As in Mask::dense.
  int64_t first_position(const Tensor& scores, const Attend& call) const;
  /// The weights before dropout: what a probe sees. first_query as in Mask::dense.
  Tensor weights(const Heads& heads, const Attend& call, int64_t first_query) const;
};

}  // namespace heed
