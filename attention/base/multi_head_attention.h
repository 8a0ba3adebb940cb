// MultiHeadAttention, rung 3: multi-head projections; a variant overrides attend().
#pragma once

#include "heed/attention/base/key_value_cache.h"
#include "heed/attention/base/modifiers.h"
#include "heed/nn/attention.h"
#include "heed/nn/linear.h"

namespace heed {

/// The identity matrix [1, 1, size, size] in the dtype and on the device of `as`. With it as values, the
/// output of an attention is its map.
Tensor identity(int64_t size, const Tensor& as);

/// Which input projections an attention has.
enum class Project {
  qkv,        ///< separate projections of queries, keys and values
  shared_qk,  ///< keys use the projection of queries
  qv,         ///< none of keys: scores do not depend on them
  v           ///< of values only: the map does not depend on the input
};

/// Multi-head attention: Concat(head_1, ..., head_H) W^O (Vaswani et al. 2017, section 3.2.2).
class MultiHeadAttention : public Attention {
 public:
  /// Makes the projections that `project` asks for, [width, width] or, with fewer key-value heads, narrower.
  MultiHeadAttention(const AttentionConfig& config, Rng& rng, Project project = Project::qkv);
  Tensor forward(const AttentionInput& input) final;
  /// The attention without projections, on given heads -> [B, H, Tq, dv]; for tests against formulas.
  /// input.queries and input.keys are what the heads were projected from. They may be empty; then the tensors
  /// that a variant computes from them must be given in its fields(). k and v may have fewer heads, shared by
  /// groups of query heads. The caller applies qk_norm and rope: see normalize_and_rotate().
  Tensor on_heads(Heads heads, const AttentionInput& input);
  /// The heads of a call with qk_norm and rope applied to queries and keys.
  Heads normalize_and_rotate(Heads heads, const AttentionInput& input) const;
  /// True when position biases, softcap and sink act on this attention's scores; otherwise make_attention()
  /// fails for them.
  virtual bool modifies_scores() const { return false; }
  void fields(Fields& f) override;

  Linear query;   ///< W^Q; empty with Project::v
  Linear key;     ///< W^K; empty unless Project::qkv
  Linear value;   ///< W^V
  Linear output;  ///< W^O, applied to the concatenated heads

 protected:
  /// Attends with the projected heads of this call -> [B, H, Tq, dv]. The variant reads and updates the cache
  /// itself: see read_cache().
  virtual Tensor attend(Heads heads, const AttentionInput& input) = 0;

  /// Appends the keys and values of the call to input.cache (a KeyValueCache) and puts the cached ones into
  /// `heads`. Returns the position of the first query: among the keys in self-attention, among all queries so
  /// far in cross-attention.
  int64_t read_cache(Heads& heads, const AttentionInput& input) const;
  /// Arguments of a fused op: the scale, and when training the dropout rate and its random draw.
  kernel::AttentionParams params(const AttentionInput& input, double scale) const;
  /// Fails when the call has an additive bias or a cache: for variants that support neither.
  static void refuse_extras(const char* name, const AttentionInput& input);
  /// True when attend() accepts fewer key-value heads than query heads; otherwise k and v are repeated.
  virtual bool shares_keys() const { return false; }
  /// [B, T, H d] -> [B, H, T, d], a view.
  Tensor split(const Tensor& x) const;

  /// What the attention was made for: width, heads, dropout, modifiers.
  const AttentionConfig& config() const { return config_; }
  /// Position biases, qk_norm, rope, softcap and sink.
  const HeadModifiers& modifiers() const { return modifiers_; }
  int64_t head_dim() const { return config_.width_of_head(); }  ///< d: the width of a query's head
  /// Heads of keys and values: fewer than those of queries in grouped-query attention.
  int64_t kv_heads() const { return config_.kv_heads > 0 ? config_.kv_heads : config_.heads; }

 private:
  Tensor unread(const Tensor& x) const;
  /// on_heads() as the editor of the call's context says.
  Tensor on_edited_heads(const Heads& heads, const AttentionInput& input);

  AttentionConfig config_;
  Project project_;
  HeadModifiers modifiers_;
};

}  // namespace heed
