// Rung 1: who may meet whom; a variant overrides keys().
#pragma once

#include <array>

#include "attention/scored.h"

namespace heed {

/// Receives the keys of one query.
class KeySet {
 public:
  void range(int64_t first, int64_t last);  ///< keys first <= j < last; what lies outside the input is cut
  void one(int64_t key) { range(key, key + 1); }

 private:
  friend class PatternedAttention;
  std::vector<std::pair<int64_t, int64_t>> runs_;
};

/// Scaled dot products of the pairs a pattern allows, and only of those: time and memory follow what is kept.
/// Weights are not dropped out: there is no map to draw over.
class PatternedAttention : public ScoredAttention {
 public:
  using ScoredAttention::ScoredAttention;
  bool modifies_scores() const override { return false; }

 protected:
  /// Which keys may query i look at? Asked once for each length and kept. `length` is the number of keys.
  virtual void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const = 0;
  /// True when all heads share one pattern.
  virtual bool same_for_all_heads() const { return true; }

  Tensor score(const Tensor& q, const Tensor& k, const Attend& call) const final;
  Tensor weigh(const Tensor& scores, const Tensor& q, const Attend& call) const final;
  Tensor attend(Heads heads, const Attend& call) final;

 private:
  std::shared_ptr<const kernel::Pattern> pattern(int64_t first_query, int64_t queries, int64_t length,
                                                 bool causal) const;

  mutable std::shared_ptr<const kernel::Pattern> last_;  // of the last length asked for
  mutable std::array<int64_t, 4> last_for_{};
};

}  // namespace heed
