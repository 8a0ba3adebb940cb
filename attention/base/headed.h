// Rung 3: projections and heads; a variant overrides attend().
#pragma once

#include "attention/modified.h"
#include "nn/attention.h"
#include "nn/linear.h"

namespace heed {

/// 1 on the diagonal, [1, 1, size, size], in the dtype and on the device of `as`. Where values are this, what
/// comes out is the map.
Tensor identity(int64_t size, const Tensor& as);

/// Queries, keys and values of all heads, views of [B, T, H, d]. k and v are empty when the call gave no
/// keys. Where query heads share keys, k and v have fewer heads until attend() or recall() repeats them.
struct Heads {
  Tensor q, k, v;  ///< [B, H, Tq, d], [B, H, Tk, d], [B, H, Tk, dv]
};

/// Keys and values seen so far: what a variant remembers that needs all of them, or the last ones.
struct KeyValueMemory : Memory {
  int64_t reach = -1;   ///< how many keys before its own a query looks at; -1: all
  int64_t anchors = 0;  ///< how many of the first keys every query looks at besides
  int64_t front = 0;  ///< how many of these stand before the others, which follow after a gap, when recalled
  int64_t forgotten = 0;  ///< keys that were let go, as nobody reaches them any more
  Tensor keys, values;    ///< [B, Hk, capacity, d]; row r is key number forgotten + r, up to `length`
  Tensor first_keys, first_values;  ///< [B, Hk, up to `anchors`, d]; empty without anchors
  void fields(Fields& f) override;

  /// Appends heads.k and heads.v (where given) and puts what is remembered into them: all keys, or those that
  /// the queries of this call reach, `front` first ones before them. While a tape records, the sums keep
  /// their history; under NoTape rows are written into room that doubles when it is full, or is used again
  /// when enough was forgotten.
  void remember(Heads& heads);

 private:
  void append(Tensor& all, const Tensor& rows, int64_t from, bool keep_history) const;
};

/// Which projections of the input an attention has.
enum class Project {
  qkv,        ///< one each for queries, keys and values
  shared_qk,  ///< keys are projected as queries are
  qv,         ///< no keys: the score does not look at them
  v           ///< nor queries: the map does not look at the input
};

/// Splits the model width into heads, attends, joins: Concat(head_1, ..., head_H) W^O (Vaswani et al. 2017,
/// section 3.2.2).
class HeadedAttention : public Attention {
 public:
  HeadedAttention(const AttentionConfig& config, Rng& rng, Project project = Project::qkv);
  Tensor forward(const Attend& call) final;
  /// The attention alone, on heads that are given and without projections: what a formula is compared with.
  /// Of `call`, queries and keys are what the heads were projected from, and may be empty: what a variant
  /// makes of them is then a place among its fields() that must be filled. k and v may have fewer heads,
  /// which groups of query heads share. Normalised or turned queries and keys (qk_norm, rope) are the
  /// caller's to make: ready(). -> [B, H, Tq, dv]
  Tensor on_heads(Heads heads, const Attend& call);
  /// The heads of a call with what acts on queries and keys before they meet: qk_norm, and rope at their
  /// places.
  Heads ready(Heads heads, const Attend& call) const;
  /// True when biases, a softcap and a sink act on this attention's scores; where not, make_attention()
  /// refuses them.
  virtual bool modifies_scores() const { return false; }
  void fields(Fields& f) override;

  Linear query, key, value, output;  ///< key is empty unless Project::qkv, query with Project::v

 protected:
  /// heads -> [B, H, Tq, d], given the projected heads of this call. Memory is the variant's to use: see
  /// recall().
  virtual Tensor attend(Heads heads, const Attend& call) = 0;

  /// Adds what call.memory holds to the heads (a KeyValueMemory), and tells the position of the first query:
  /// among the keys for self-attention, among the queries asked so far for cross-attention.
  int64_t recall(Heads& heads, const Attend& call) const;
  /// What a fused op takes from a pass: its dropout and the draw for it.
  kernel::AttentionTerms terms(const Attend& call, double scale) const;
  /// Fails where the call has a bias or a memory: for variants that can use neither.
  static void refuse_extras(const char* name, const Attend& call);
  /// True when attend() takes k and v with the heads they have; otherwise they are repeated for it.
  virtual bool shares_keys() const { return false; }
  /// [B, T, H d] -> [B, H, T, d], a view.
  Tensor split(const Tensor& x) const;

  const AttentionConfig& config() const { return config_; }
  const HeadModifiers& modifiers() const { return modifiers_; }
  int64_t head_width() const { return config_.width_of_head(); }
  int64_t key_heads() const { return config_.key_heads > 0 ? config_.key_heads : config_.heads; }

 private:
  Tensor unread(const Tensor& x) const;

  AttentionConfig config_;
  Project project_;
  HeadModifiers modifiers_;
};

}  // namespace heed
