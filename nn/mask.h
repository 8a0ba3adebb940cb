// Mask: which query may attend to which key, as rules rather than a matrix.
#pragma once

#include <memory>

#include "heed/nn/packing.h"

namespace heed {

/// The pairs of query and key that may attend: causality, padding, an additive bias. The host never reads a
/// tensor's values, so nothing waits for the device. A query that may attend to no key gets zeros.
class Mask {
 public:
  static Mask none() { return {}; }                ///< every query may attend to every key
  static Mask causal();                            ///< no query attends to a later key
  static Mask lengths(const Tensor& key_lengths);  ///< i32 [B]: keys at or past a length are padding
  /// Self-attention of packed sequences: each query may attend to the keys of its own sequence.
  static Mask packed(std::shared_ptr<const Packing> sequences);
  /// Queries and keys of two packings of as many sequences, as in cross-attention; either may be null, and is
  /// padded then, keys without padding of their own.
  static Mask packed(std::shared_ptr<const Packing> queries, std::shared_ptr<const Packing> keys);
  Mask operator&(const Mask& other) const;  ///< pairs that both allow
  /// This mask with an additive bias [1|B, 1|H, Tq, Tk] on the scores.
  Mask with(const Tensor& bias) const;

  bool is_causal() const { return causal_; }                  ///< true where no query attends to a later key
  const Tensor& key_lengths() const { return key_lengths_; }  ///< empty: no padding
  const Tensor& bias() const { return bias_; }                ///< empty: none
  /// How the queries are packed; null: they are padded.
  const std::shared_ptr<const Packing>& query_packing() const { return query_packing_; }
  /// How the keys are packed; null: they are padded.
  const std::shared_ptr<const Packing>& key_packing() const { return key_packing_; }
  /// True where queries or keys are packed.
  bool is_packed() const { return query_packing_ || key_packing_; }
  /// This mask for padded queries and keys.
  Mask of_padded() const;

  /// The tensor to add to scores [B, H, Tq, Tk]: 0 or -inf, plus the bias. Empty when every pair is allowed
  /// and there is no bias. first_query: the position of query 0 among the keys.
  Tensor dense(const Tensor& scores, int64_t first_query) const;
  /// 1 for keys, 0 for padding: [B, 1, T, 1] in the dtype of x [B, H, T, d]; empty without lengths. `first`:
  /// the position of the first row of x among the keys.
  Tensor padding_mask(const Tensor& x, int64_t first) const;
  /// x [B, ..., T, W] without numbers in its padding that could reach real outputs: NaN, infinities and
  /// numbers beyond +-1e15 become 0. Products that a zero weight should cancel are then finite. Other numbers
  /// keep their bits; x itself without lengths. Gradients pass through, since padding gets none.
  Tensor finite_padding(const Tensor& x, int64_t first) const;

 private:
  void check_batch(int64_t batch) const;

  bool causal_ = false;
  Tensor key_lengths_;
  Tensor bias_;
  std::shared_ptr<const Packing> query_packing_, key_packing_;
};

}  // namespace heed
