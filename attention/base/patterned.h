// PatternedAttention, rung 1: softmax over a sparse pattern; a variant overrides keys().
#pragma once

#include "heed/attention/base/scored.h"
#include "heed/core/parallel/recent_values.h"

namespace heed {

/// Collects the keys that one query attends to.
class KeySet {
 public:
  void range(int64_t first, int64_t last);        ///< keys first <= j < last, clipped to the input
  void one(int64_t key) { range(key, key + 1); }  ///< this key, unless it lies outside of the input

 private:
  friend class PatternedAttention;
  std::vector<std::pair<int64_t, int64_t>> runs_;
};

/// Softmax of scaled dot products over the pairs of a pattern only: time and memory grow with the number of
/// pairs. In cross-attention, query i has the pattern of position i among the keys.
class PatternedAttention : public ScoredAttention {
 public:
  /// `scale` multiplies the scores; 0: 1 / sqrt(d).
  PatternedAttention(const AttentionConfig& config, Rng& rng, double scale = 0);
  std::unique_ptr<AttentionCache> new_cache() const override;
  bool modifies_scores() const override { return false; }

 protected:
  /// Adds the keys that query i attends to. Called once per length; the result is reused. `length` is the
  /// number of keys; when decoding step by step, the number so far, on which the result must not depend then.
  virtual void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const = 0;
  /// True when all heads share one pattern.
  virtual bool same_for_all_heads() const { return true; }
  /// The largest distance back to a key; -1: no limit. The cache of a decoder drops keys further away.
  virtual int64_t reach() const { return -1; }
  /// The number of first keys that every query attends to at any distance; the cache keeps them.
  virtual int64_t anchors() const { return 0; }
  /// A number that changes when the result of keys() changes, such as after random keys were loaded.
  virtual uint64_t edition() const { return 0; }

  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const final;
  Tensor weigh(const Tensor& scores, const Tensor& q, const AttentionInput& input) const final;
  Tensor attend(Heads heads, const AttentionInput& input) override;
  /// The map [B, H, Tq, Tk] of a call over all keys, for MapRecorder.
  Tensor dense_map(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
  /// Attends without recording a map. first_query: the result of read_cache().
  Tensor attend_pattern(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
  /// The factor of the scores of q [B, H, Tq, d].
  double scale(const Tensor& q) const;

 private:
  struct Asked {
    int64_t first_query = 0, queries = 0, length = 0;
    int64_t front = 0, first_key = 0;  ///< cached are keys 0 <= j < front and j >= first_key
    bool causal = false;
    uint64_t edition = 0;
    bool operator==(const Asked&) const = default;
    int64_t keys() const { return front + length - first_key; }
    /// The position of cached key n.
    int64_t position(int64_t n) const { return n < front ? n : n - front + first_key; }
  };
  static Tensor present(const Tensor& lengths, const Asked& asked);
  Asked asked(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
  std::shared_ptr<const kernel::Pattern> pattern(const Asked& asked) const;
  kernel::Pattern make_pattern(const Asked& asked) const;

  double scale_;
  RecentValues<Asked, kernel::Pattern> patterns_{4};
};

}  // namespace heed
