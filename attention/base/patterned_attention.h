// PatternedAttention, a base class: softmax over a sparse pattern; a variant overrides keys().
#pragma once

#include "heed/attention/base/scored_attention.h"
#include "heed/core/parallel/recent_values.h"

namespace heed {

/// Collects the keys that one query attends to.
class KeySet {
 public:
  void add_range(int64_t first, int64_t end);         ///< adds keys first <= j < end, clipped to the input
  void add(int64_t key) { add_range(key, key + 1); }  ///< adds one key, unless it lies outside of the input

 private:
  friend class PatternedAttention;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // first key and end; they may overlap
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
  /// number of keys, or of keys so far when decoding step by step, where the result must not depend on it.
  virtual void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const = 0;
  /// True when all heads share one pattern.
  virtual bool heads_share_pattern() const { return true; }
  /// The largest distance from a query back to a key; -1: no limit. A decoder's cache drops keys further
  /// away.
  virtual int64_t window() const { return -1; }
  /// The number of first keys that every query attends to at any distance; the cache keeps them.
  virtual int64_t num_first_keys() const { return 0; }
  /// A number that changes when the result of keys() changes, for example after random keys were loaded.
  virtual uint64_t pattern_version() const { return 0; }

  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const final;
  /// None: a pattern takes no formulas.
  PairFormulas formulas(const AttentionInput&) const final { return {}; }
  Tensor attend(Heads heads, const AttentionInput& input) override;
  /// The map [B, H, Tq, Tk] of a call over all keys, for MapRecorder.
  Tensor dense_map(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
  /// Attends without recording a map; first_query is the result of read_cache().
  Tensor attend_pattern(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
  /// Arguments of an op over the pattern of a call, with dropout in training.
  kernel::PatternParams pattern_params(const Heads& heads, const AttentionInput& input,
                                       int64_t first_query) const;
  /// The factor of the scores of q [B, H, Tq, d].
  double scale(const Tensor& q) const { return attention_scale(scale_, q.extent(3)); }

 private:
  /// The queries and keys of a call; equal calls have equal patterns.
  struct Call {
    int64_t first_query = 0, queries = 0;  ///< positions first_query <= i < first_query + queries
    int64_t length = 0;                    ///< number of keys, dropped ones included
    int64_t num_prepended = 0;             ///< keys 0 <= j < num_prepended are cached,
    int64_t first_key = 0;                 ///< and keys first_key <= j < length
    bool causal = false;
    uint64_t pattern_version = 0;
    bool operator==(const Call&) const = default;
    int64_t num_keys() const { return num_prepended + length - first_key; }  ///< cached ones
    int64_t num_dropped_keys() const { return first_key - num_prepended; }   ///< those between the two parts
    /// The position of cached key n.
    int64_t position(int64_t n) const { return n < num_prepended ? n : n + num_dropped_keys(); }
  };
  /// The number of cached keys of each sequence, i32 [B], from the number of all its keys.
  static Tensor cached_lengths(const Tensor& lengths, const Call& call);
  /// `heads` with zeros in place of the keys that the cache dropped, so that row j holds key j.
  static Heads with_dropped_keys(const Heads& heads, const Call& call);
  Call call_of(const Heads& heads, const AttentionInput& input, int64_t first_query) const;
  std::shared_ptr<const kernel::Pattern> pattern(const Call& call) const;
  kernel::Pattern make_pattern(const Call& call) const;

  double scale_;
  RecentValues<Call, kernel::Pattern> patterns_{4};
};

}  // namespace heed
