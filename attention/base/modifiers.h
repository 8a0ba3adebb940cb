// What combines with most attentions: positions inside them, normalised queries and keys, capped scores,
// sinks.
#pragma once

#include "nn/attention.h"

namespace heed {

/// Angles of rope, made once and kept: those of pair i of d / 2 turn by base^(-2 i / d) a position.
class RotaryAngles {
 public:
  /// Cosines and sines [end - first, d] of positions first <= t < end, in the dtype and on the device of x; d
  /// is even, and d and base are the same at each call.
  Tensor at(const Tensor& x, int64_t first, int64_t end, int64_t d, double base) const;

 private:
  mutable Tensor table_;  // of all positions asked for so far
};

/// The modifiers of one attention, with their parameters:
///   query_gain, key_gain  [d] for qk_norm = rms; query_gain [H, 1, 1] for l2
///   position_bias         [buckets, H] of t5
///   position_vectors      [2 span + 1, d] of shaw and shaw_keys; row span + j - i belongs to query i and key
///                         j, and is added to the key
///   value_vectors         [2 span + 1, d] of shaw, added to the value
///   sink                  [H] where it is learned
class HeadModifiers {
 public:
  HeadModifiers(const AttentionConfig& config, Rng& rng);
  void fields(Fields& f);

  /// q [B, H, T, d] or k [B, Hk, T, d] before they meet: normalised, and turned by their positions, of which
  /// `first` is that of row 0.
  Tensor ready_query(const Tensor& q, int64_t first) const {
    return turned(normalised(q, query_gain_), first);
  }
  Tensor ready_key(const Tensor& k, int64_t first) const { return turned(normalised(k, key_gain_), first); }

  /// True when something acts on scores.
  bool on_scores() const;
  /// What a score gains by distance, [H, Tq + Tk - 1]: at i - j + Tk - 1 for query i, whose position is
  /// first_query + i, and key j. Empty without alibi or t5.
  Tensor relative(const Tensor& q, int64_t keys, int64_t first_query) const;
  bool relative_is_trained() const { return static_cast<bool>(position_bias_); }
  /// Scores [B, H, Tq, Tk] of q with everything but the mask and the sink: shaw, the cap, alibi or t5.
  Tensor scores(const Tensor& plain, const Tensor& q, int64_t first_query) const;
  bool has_vectors() const { return static_cast<bool>(position_vectors_); }
  /// What a map [B, H, Tq, Tk] makes of the vectors of values, [B, H, Tq, d]; empty without any. Fails where
  /// values are not d wide.
  Tensor of_value_vectors(const Tensor& map, const Tensor& v, int64_t first_query) const;
  double softcap() const { return modifiers_.softcap; }
  /// [H] in the dtype of q; empty without a sink.
  Tensor sink(const Tensor& q) const;
  /// Weights [B, H, Tq, Tk] of masked scores, less the share that a sink takes.
  Tensor shared_with_sink(const Tensor& weights, const Tensor& scores) const;

 private:
  Tensor normalised(const Tensor& x, const Tensor& gain) const;
  Tensor turned(const Tensor& x, int64_t first) const;
  Tensor from_vectors(const Tensor& q, int64_t keys, int64_t first_query) const;
  Tensor by_place(const Tensor& vectors, int64_t queries, int64_t keys, int64_t first_query) const;

  Modifiers modifiers_;
  int64_t heads_;
  bool causal_;
  Tensor query_gain_, key_gain_, position_bias_, position_vectors_, value_vectors_, sink_;
  RotaryAngles angles_;
};

/// Heads of x [B, Hk, T, d] repeated to H of them, neighbours alike; x itself where there are as many.
Tensor repeated(const Tensor& x, int64_t heads);

/// The falls of alibi: 2^(-8 (h + 1) / H) for a power of two; otherwise those of the power below, and every
/// second one of the power above. Press et al. 2021, arXiv 2108.12409.
std::vector<double> alibi_slopes(int64_t heads);

/// The bucket of a distance, key less query: half of them exact, the rest growing with the logarithm up to
/// `span`. Raffel et al. 2019, arXiv 1910.10683.
int64_t t5_bucket(int64_t distance, bool causal, int64_t buckets, int64_t span);

}  // namespace heed
