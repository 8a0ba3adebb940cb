// KernelizedAttention, rung 2': linear attention by feature maps; a variant overrides feature().
#pragma once

#include "heed/attention/base/multi_head_attention.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

namespace heed {

/// The cache of a kernelized attention: sums of constant size.
struct SumCache : AttentionCache {
  Tensor sums;  ///< [B, H, f, d + 1]: sum over keys of phi(k) [v, 1]^T; with all monomials of phi where f(s)
                ///< needs them
  void fields(Fields& f) override { f("sums", sums); }  ///< names the sums, for copying and reordering rows
};

/// y_i = sum_j f(s_ij) v_j / (sum_j f(s_ij) + epsilon) with s_ij = phi(q_i) . phi(k_j) and a polynomial f, in
/// time and memory linear in the length. Katharopoulos et al. 2020, arXiv 2006.16236, equations 5, 6, 9-12,
/// where f(s) = s.
class KernelizedAttention : public MultiHeadAttention {
 public:
  /// With f(s) = s.
  KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng);
  /// With f, epsilon and the preparation of features from `params`; mask, lengths and random draws come with
  /// each call.
  KernelizedAttention(const AttentionConfig& config, const kernel::PolynomialParams& params, Rng& rng);
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<SumCache>(); }

 protected:
  virtual Tensor feature(const Tensor& x) const { return x; }  ///< [B, H, T, d] -> [B, H, T, f]
  /// Features of queries and keys (k may be empty); feature() of both unless overridden.
  virtual Heads features(Heads heads, const AttentionInput& input) const;
  /// Applies dropout to features when training, or sets params.dropout; the default does neither.
  virtual Heads feature_dropout(Heads features, kernel::PolynomialParams& params, Rng& rng) const;
  Tensor attend(Heads heads, const AttentionInput& input) override;
  /// Fails on an additive bias, on lengths of another batch size, and on more causal queries than keys.
  static void check(const Heads& heads, const AttentionInput& input);
  /// The polynomial f with the epsilon of the denominator.
  const kernel::PolynomialParams& polynomial() const { return params_; }

 private:
  Tensor step(const Heads& phi, kernel::PolynomialParams params, const AttentionInput& input) const;
  void show(const Heads& phi, const AttentionInput& input) const;
  kernel::PolynomialParams params_;
};

/// 1 where x [..., 1] is 0, 0 elsewhere, without a gradient: added to divisors of empty sums.
Tensor one_for_zero(const Tensor& x);
/// The divisor of a row in the fused kernel, from its sum of weights [..., 1]: with epsilon and guard; 1
/// where that is 0.
Tensor divisor(const Tensor& total, const kernel::PolynomialParams& params);
/// The fused kernel's preparation of queries and keys [B, H, T, d], in plain ops.
Tensor prepared(const Tensor& x, const kernel::PolynomialParams& params);
/// The attention map [B, H, Tq, Tk] from features, in plain ops: for MapRecorder.
Tensor polynomial_map(const Tensor& q, const Tensor& k, const kernel::PolynomialParams& params,
                      const Mask& mask, int64_t first_query);

}  // namespace heed
