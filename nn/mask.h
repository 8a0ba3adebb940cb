// Mask: who may look at whom, said rather than stored.
#pragma once

#include "core/tensor.h"

namespace heed {

/// Who may look at whom. No value is ever inspected on the host, so nothing waits for the device.
/// A query that may look at nothing gets zeros.
class Mask {
 public:
  static Mask none() { return {}; }
  static Mask causal();                            ///< no key after the query
  static Mask lengths(const Tensor& key_lengths);  ///< i32 [B]: keys at or past a length are padding
  Mask operator&(const Mask& other) const;         ///< both must allow
  /// Adds `bias` [1|B, 1|H, Tq, Tk] to the scores.
  Mask with(const Tensor& bias) const;

  bool is_causal() const { return causal_; }
  const Tensor& key_lengths() const { return key_lengths_; }  ///< empty: nothing is padding
  const Tensor& bias() const { return bias_; }                ///< empty: none

  /// What is added to scores [B, H, Tq, Tk]: 0 or -inf, and the bias. Empty when everything is allowed.
  /// first_query is the position of query 0 among the keys.
  Tensor dense(const Tensor& scores, int64_t first_query) const;
  /// 1 for keys, 0 for padding, as [B, 1, T, 1] in the dtype of x [B, H, T, d]; empty without lengths.
  /// The first row of x is key number `first`.
  Tensor kept(const Tensor& x, int64_t first) const;

 private:
  void check_batch(int64_t batch) const;

  bool causal_ = false;
  Tensor key_lengths_;
  Tensor bias_;
};

}  // namespace heed
