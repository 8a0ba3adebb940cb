// MultiHeadAttention, a base class: projections into heads; a variant overrides attend().
#pragma once

#include "heed/attention/base/call_checks.h"
#include "heed/attention/base/head_modifiers.h"
#include "heed/attention/base/key_value_cache.h"
#include "heed/nn/linear.h"

namespace heed {

/// The identity matrix [1, 1, size, size] in the dtype and on the device of `like`.
Tensor identity(int64_t size, const Tensor& like);
/// The identity matrix of each head [B, H, T, T], for x [B, H, T, d]. An attention that is linear in its
/// values returns its map when these are the values.
Tensor identity_values(const Tensor& x);
/// softmax(scale q k^T + mask): the map [B, H, Tq, Tk] of q [B, H, Tq, d] and k [B, H, Tk, d] in plain ops.
Tensor softmax_map(const Tensor& q, const Tensor& k, double scale, const Mask& mask, int64_t first_query);
/// Arguments of a fused op: `scale`, and in training the dropout rate and its random draw.
kernel::AttentionParams attention_params(const AttentionInput& input, double scale, double dropout);
/// attention_params() with the mask of the call and its packing; query 0 has position `first_query`.
kernel::AttentionParams masked_attention_params(const AttentionInput& input, double scale, double dropout,
                                                int64_t first_query);

/// The input projections of an attention.
enum class Project {
  qkv,        ///< separate projections of queries, keys and values
  shared_qk,  ///< keys use the projection of queries
  qv,         ///< separate projections of queries and values only: scores do not depend on keys
  v           ///< only values are projected: the map does not depend on the input
};

/// Multi-head attention: Concat(head_1, ..., head_H) W^O (Vaswani et al. 2017, section 3.2.2).
class MultiHeadAttention : public Attention {
 public:
  /// Creates the projections in `project`: [width, width] or, with fewer key-value heads, narrower.
  MultiHeadAttention(const AttentionConfig& config, Rng& rng, Project project = Project::qkv);
  Tensor forward(const AttentionInput& input) final;
  bool takes_packed(const AttentionInput&) const final { return true; }
  bool takes_bf16() const final { return true; }
  /// Attends with given heads, without projections -> [B, H, Tq, dv]. input.queries and input.keys are the
  /// inputs that the heads were projected from. They may be empty; then the tensors that a variant computes
  /// from them must be given in its fields(). k and v may have fewer heads, shared by groups of query heads.
  /// The caller applies qk_norm and rope by normalize_and_rotate().
  Tensor on_heads(Heads heads, const AttentionInput& input);
  /// Applies qk_norm and rope to the queries and keys of a call.
  Heads normalize_and_rotate(Heads heads, const AttentionInput& input) const;
  /// True when position biases, softcap and sink act on this attention's scores; otherwise make_attention()
  /// fails for them.
  virtual bool modifies_scores() const { return false; }
  /// The configuration: width, heads, dropout, modifiers.
  const AttentionConfig& config() const { return config_; }
  /// Number of key-value heads: fewer than query heads in grouped-query attention.
  int64_t kv_heads() const { return config_.kv_heads > 0 ? config_.kv_heads : config_.heads; }
  void fields(Fields& f) override;

  Linear query;   ///< W^Q; empty with Project::v
  Linear key;     ///< W^K; empty unless Project::qkv
  Linear value;   ///< W^V
  Linear output;  ///< W^O, applied to the concatenated heads

 protected:
  /// Attends with the projected heads of this call -> [B, H, Tq, dv]. The variant reads and updates the cache
  /// itself, for example by read_cache().
  virtual Tensor attend(Heads heads, const AttentionInput& input) = 0;
  /// True where attend() takes the packed heads [1, H, N, d] of this call; for others they are padded.
  virtual bool attends_packed(const AttentionInput&) const { return false; }

  /// Appends the keys and values of the call to input.cache (a KeyValueCache) and puts the cached ones into
  /// `heads`. Returns the position of the first query: among the keys in self-attention, among all queries so
  /// far in cross-attention.
  int64_t read_cache(Heads& heads, const AttentionInput& input) const;
  /// Arguments of a fused op: the scale, and in training the dropout rate of the config and its random draw.
  kernel::AttentionParams params(const AttentionInput& input, double scale) const {
    return attention_params(input, scale, config_.dropout);
  }
  /// params() with the mask of the call, whose first query is at this position.
  kernel::AttentionParams masked_params(const AttentionInput& input, double scale,
                                        int64_t first_query) const {
    return masked_attention_params(input, scale, config_.dropout, first_query);
  }
  /// Gives the map that make_map() computes to the recorder of the call, if there is one.
  template <class MakeMap>
  void record_map(const AttentionInput& input, const MakeMap& make_map) const {
    if (input.context.recorder == nullptr) return;
    const NoGrad no_grad;
    input.context.recorder->record(*this, make_map());
  }
  /// The position of the first query of a call: among the keys in self-attention, among all queries so far in
  /// cross-attention. To be called before the cache is updated.
  int64_t first_query_position(const Heads& heads, const AttentionInput& input) const;
  /// Fails when the call has an additive bias or a cache: for variants that support neither.
  static void refuse_bias_and_cache(const char* name, const AttentionInput& input);
  /// True when attend() accepts fewer key-value heads than query heads; otherwise k and v are repeated.
  virtual bool shares_keys() const { return false; }
  /// [B, T, H d] -> [B, H, T, d], a view.
  Tensor split(const Tensor& x) const;
  /// split() of a projection of inputs x [B, T, d_model], in the dtype of its weights.
  Tensor projected(const Linear& projection, const Tensor& x) const {
    return split(projection(x, projection.weight.dtype()));
  }

  /// Position biases, qk_norm, rope, softcap and sink.
  const HeadModifiers& modifiers() const { return modifiers_; }
  int64_t head_dim() const { return config_.width_of_head(); }  ///< d: width of a query head

 private:
  /// The projected heads of a call. On a GPU, projections of the same input are one product: linear_each().
  Heads project(const AttentionInput& input) const;
  /// Queries [B, H, Tq, d] for Project::v, whose scores do not depend on them: x split into heads where it is
  /// as wide as they are, zeros otherwise.
  Tensor ignored_queries(const Tensor& x) const;
  /// on_heads(), or on_edited_heads() where the call has an editor.
  Tensor on_padded_heads(const Heads& heads, const AttentionInput& input);
  /// Runs on_heads() with the maps and outputs that the editor of the call's context replaces.
  Tensor on_edited_heads(const Heads& heads, const AttentionInput& input);

  AttentionConfig config_;
  Project project_;
  HeadModifiers modifiers_;
};

}  // namespace heed
