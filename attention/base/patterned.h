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
/// Where queries are not keys' own positions (cross-attention), query i stands beside key i.
class PatternedAttention : public ScoredAttention {
 public:
  /// `scale` multiplies the scores; 0: 1 / sqrt(d).
  PatternedAttention(const AttentionConfig& config, Rng& rng, double scale = 0);
  std::unique_ptr<Memory> start() const override;
  bool modifies_scores() const override { return false; }

 protected:
  /// Which keys may query i look at? Asked once for each length and kept. `length` is the number of keys, or
  /// the number so far where a decoder goes step by step: what a query sees must not depend on it then.
  virtual void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const = 0;
  /// True when all heads share one pattern.
  virtual bool same_for_all_heads() const { return true; }
  /// How far back a query looks at most; -1: to the first key. A decoder forgets what is further away.
  virtual int64_t reach() const { return -1; }
  /// How many of the first keys every query looks at, however far away: a decoder keeps them.
  virtual int64_t anchors() const { return 0; }
  /// A number that changes when what keys() answers does, as with random keys that were loaded.
  virtual uint64_t edition() const { return 0; }

  Tensor score(const Tensor& q, const Tensor& k, const Attend& call) const final;
  Tensor weigh(const Tensor& scores, const Tensor& q, const Attend& call) const final;
  Tensor attend(Heads heads, const Attend& call) override;
  /// The weights of each query over all keys: [B, H, Tq, Tk], of the heads of a call. For probes.
  Tensor dense_map(const Heads& heads, const Attend& call, int64_t first_query) const;
  /// Attends without showing a map. first_query as recall() tells it.
  Tensor attend_pattern(const Heads& heads, const Attend& call, int64_t first_query) const;
  /// What multiplies the scores of q [B, H, Tq, d].
  double scale(const Tensor& q) const;

 private:
  struct Asked {
    int64_t first_query = 0, queries = 0, length = 0;
    int64_t front = 0, first_key = 0;  ///< keys 0 <= j < front are there, and those from first_key on
    bool causal = false;
    uint64_t edition = 0;
    bool operator==(const Asked&) const = default;
    int64_t keys() const { return front + length - first_key; }
    /// The number of key n of those that are there.
    int64_t position(int64_t n) const { return n < front ? n : n - front + first_key; }
  };
  struct Kept {
    Asked asked;
    std::shared_ptr<const kernel::Pattern> pattern;
  };
  static Tensor present(const Tensor& lengths, const Asked& asked);
  Asked asked(const Heads& heads, const Attend& call, int64_t first_query) const;
  std::shared_ptr<const kernel::Pattern> pattern(const Asked& asked) const;

  double scale_;
  mutable std::array<Kept, 4> last_;  ///< of the lengths asked for last, the newest first
};

}  // namespace heed
