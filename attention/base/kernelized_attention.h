// KernelizedAttention, a base class: linear attention by feature maps; a variant overrides feature().
#pragma once

#include "heed/attention/base/multi_head_attention.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

namespace heed {

/// The cache of a kernelized attention: sums of constant size.
struct SumCache : AttentionCache {
  /// [B, H, f, d + 1]: the sum over keys of phi(k) [v, 1]^T. Where f(s) is not s itself, f counts all
  /// monomials of phi(k), and these take its place.
  Tensor sums;
  void fields(Fields& f) override { f("sums", sums); }
};

/// y_i = sum_j f(s_ij) v_j / (sum_j f(s_ij) + epsilon) with s_ij = phi(q_i) . phi(k_j) and a polynomial f, in
/// time and memory linear in the length. Katharopoulos et al. 2020, arXiv 2006.16236, equations 5, 6, 9-12,
/// where f(s) = s.
class KernelizedAttention : public MultiHeadAttention {
 public:
  /// f(s) = s.
  KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng);
  /// f, epsilon and the preparation of features are those of `params`; mask, lengths and random draws come
  /// with each call.
  KernelizedAttention(const AttentionConfig& config, const kernel::PolynomialParams& params, Rng& rng);
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<SumCache>(); }

 protected:
  virtual Tensor feature(const Tensor& x) const { return x; }  ///< phi: [B, H, T, d] -> [B, H, T, f]
  /// Features of queries and keys (k may be empty); by default feature() of both.
  virtual Heads features(Heads heads, const AttentionInput& input) const;
  /// Applies dropout to features in training, or sets params.dropout; by default it does neither.
  virtual Heads feature_dropout(Heads features, kernel::PolynomialParams& params, Rng& rng) const;
  Tensor attend(Heads heads, const AttentionInput& input) override;
  /// Fails on an additive bias, on lengths of another batch size, and on more causal queries than keys.
  static void check(const Heads& heads, const AttentionInput& input);
  /// The polynomial f with the epsilon of the denominator.
  const kernel::PolynomialParams& polynomial() const { return params_; }

 private:
  Tensor attend_to_cache(const Heads& phi, kernel::PolynomialParams params,
                         const AttentionInput& input) const;

  kernel::PolynomialParams params_;
};

/// 1 where x [..., 1] is 0, else 0, without a gradient: added to divisors so that empty sums are divided
/// by 1.
Tensor zero_indicator(const Tensor& x);
/// The divisor of a row, from its sum of weights [..., 1]: the sum plus epsilon, at least `guard` in absolute
/// value; 1 where that is 0. The fused kernel divides by the same number.
Tensor row_divisor(const Tensor& weight_sum, const kernel::PolynomialParams& params);
/// The feature map that the fused kernel applies to queries and keys [B, H, T, d], in plain ops.
Tensor feature_map(const Tensor& x, const kernel::PolynomialParams& params);
/// The attention map [B, H, Tq, Tk] of queries and keys, to which feature_map() is applied here, in plain
/// ops.
Tensor polynomial_map(const Tensor& q, const Tensor& k, const kernel::PolynomialParams& params,
                      const Mask& mask, int64_t first_query);

}  // namespace heed
