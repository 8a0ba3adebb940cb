// ExponentialAttention, a base class: features are exponentials, whose causal sums are rescaled by a running
// maximum.
#pragma once

#include "heed/attention/base/kernelized_attention.h"

namespace heed {

/// A cache of sums of exponentials, divided by e^scale.
struct ScaledSumCache : SumCache {
  Tensor scale;  ///< [B, H, 1, 1 | f], without a gradient
  void fields(Fields& f) override {
    SumCache::fields(f);
    f("scale", scale);
  }
};

/// y_i = sum_j phi(q_i) . phi(k_j) v_j / sum_j phi(q_i) . phi(k_j) where phi(k_j) contains an exponential
/// that could overflow. Bidirectional calls divide features by e^(the largest exponent). A causal query must
/// not depend on later keys, so causal calls divide the state by e^(the largest exponent so far) and rescale
/// it when that grows, as streaming softmax does (Milakov and Gimelshein 2018, arXiv 1805.02867). The last
/// causal output therefore equals the bidirectional one for inputs of any size.
class ExponentialAttention : public KernelizedAttention {
 public:
  using KernelizedAttention::KernelizedAttention;
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<ScaledSumCache>(); }

 protected:
  /// Features of a causal call.
  struct Scaled {
    Tensor q;      ///< [B, H, Tq, f]
    Tensor k;      ///< [B, H, Tk, f], divided by e^scale
    Tensor scale;  ///< [B, H, Tk, 1 | f], without a gradient; non-decreasing over keys
  };
  /// Features of the queries and keys of a causal call; other calls use features(). Padded keys are zeroed
  /// afterwards, but must not raise the scale. The scale continues that of the cache, which the caller
  /// updates.
  virtual Scaled scaled(const Heads& heads, const AttentionInput& input) const = 0;
  Tensor attend(Heads heads, const AttentionInput& input) override;

  /// Serves features(): returns the larger of `scale` and the cache's scale, and rescales the cache to it.
  /// `cache` may be null.
  static Tensor raise_scale(ScaledSumCache* cache, const Tensor& scale);
  /// The running maximum over rows of x [B, H, T, w], from `initial` [B, H, 1, 1] on or empty: [B, H, T, 1].
  static Tensor running_max(const Tensor& x, const Tensor& initial);
  /// x with -1e30 added at padding; kept is 1 for keys and 0 for padding, or empty.
  static Tensor mask_padding(const Tensor& x, const Tensor& kept) {
    return kept ? x + affine(kept, 1e30, -1e30) : x;
  }

 private:
  /// Sums over earlier keys of phi(q) . phi(k) [v, 1]: [B, H, Tq, dv + 1]. Updates the cache, which may be
  /// null.
  Tensor scan(const Scaled& x, const Tensor& values, ScaledSumCache* cache) const;
};

}  // namespace heed
