// HeadModifiers: positions inside attention, query-key norm, softcap and sink, for most attentions.
#pragma once

#include "heed/attention/base/rotary_angles.h"
#include "heed/nn/attention.h"

namespace heed {

/// The modifiers of one attention, with their parameters:
///   query_gain, key_gain  [d] for qk_norm = rms; query_gain [H, 1, 1] for l2
///   position_bias         [buckets, H] of t5
///   position_vectors      [2 span + 1, d] of shaw and shaw_keys; row span + j - i is added to key j for
///                         query i
///   value_vectors         [2 span + 1, d] of shaw, added to the value
///   sink                  [H] for sink = learned
class HeadModifiers {
 public:
  /// Creates the parameters of config.modifiers; fails for rope with heads of odd width.
  HeadModifiers(const AttentionConfig& config, Rng& rng);
  void fields(Fields& f);  ///< names the parameters above, those that exist

  /// Normalises and rotates queries [B, H, T, d]; `first` is the position of row 0. With `packing`, q is
  /// [1, H, N, d] of packed sequences.
  Tensor normalize_and_rotate_query(const Tensor& q, int64_t first, const Packing* packing = nullptr) const {
    return rotated(normalised(q, query_gain_), first, packing);
  }
  /// normalize_and_rotate_query() for keys [B, Hk, T, d].
  Tensor normalize_and_rotate_key(const Tensor& k, int64_t first, const Packing* packing = nullptr) const {
    return rotated(normalised(k, key_gain_), first, packing);
  }

  /// True when a modifier acts on scores.
  bool acts_on_scores() const;
  /// The bias by distance of alibi or t5, [H, Tq + Tk - 1], else empty: entry i - j + Tk - 1 is for query i,
  /// whose position is first_query + i, and key j. In the dtype and on the device of q.
  Tensor distance_bias(const Tensor& q, int64_t queries, int64_t keys, int64_t first_query) const;
  /// True when distance_bias() is the learned bias of t5, which needs a gradient.
  bool has_trained_bias() const { return static_cast<bool>(position_bias_); }
  /// Scores [B, H, Tq, Tk] with shaw, softcap, alibi and t5 applied; without mask and sink.
  Tensor modified_scores(const Tensor& plain, const Tensor& q, int64_t first_query) const;
  /// True with the position vectors of shaw or shaw_keys.
  bool has_position_vectors() const { return static_cast<bool>(position_vectors_); }
  /// Shaw's value term: a map [B, H, Tq, Tk] times the value vectors by distance -> [B, H, Tq, d]; empty
  /// without them. Fails when values are not d wide.
  Tensor value_vector_term(const Tensor& map, const Tensor& v, int64_t first_query) const;
  double softcap() const { return modifiers_.softcap; }  ///< c in c tanh(score / c); 0: no softcap
  /// The sink's logits [H] in the dtype of q; empty without a sink.
  Tensor sink(const Tensor& q) const;
  bool has_trained_sink() const { return static_cast<bool>(sink_); }  ///< True where sink() needs a gradient.
  /// Weights [B, H, Tq, Tk] of masked scores, reduced by the sink's share of each row.
  Tensor with_sink(const Tensor& weights, const Tensor& scores) const;

 private:
  Tensor normalised(const Tensor& x,
                    const Tensor& gain) const;  ///< by qk_norm, times `gain` if that is given
  /// By rope; row 0 has position `first`, and packed rows have those of their packing.
  Tensor rotated(const Tensor& x, int64_t first, const Packing* packing) const;
  Tensor position_vector_scores(const Tensor& q, int64_t keys, int64_t first_query) const;
  Tensor vectors_by_distance(const Tensor& vectors, int64_t queries, int64_t keys, int64_t first_query) const;

  Modifiers modifiers_;
  int64_t heads_;
  bool causal_;
  Tensor query_gain_, key_gain_, position_bias_, position_vectors_, value_vectors_, sink_;
  RotaryAngles angles_;
};

/// Alibi's slopes: 2^(-8 (h + 1) / H) when H is a power of two; otherwise the slopes of the next lower power,
/// then every second slope of the next higher power. Press et al. 2021, arXiv 2108.12409.
std::vector<double> alibi_slopes(int64_t heads);

/// T5's bucket of a distance (key minus query): half of the buckets hold one distance each, the others grow
/// logarithmically up to `span`. Raffel et al. 2019, arXiv 1910.10683.
int64_t t5_bucket(int64_t distance, bool causal, int64_t buckets, int64_t span);

}  // namespace heed
