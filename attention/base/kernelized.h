// Rung 2': maps that factor; a variant overrides feature().
#pragma once

#include "attention/headed.h"
#include "core/kernels/fastmax.h"

namespace heed {

/// What a kernelized attention remembers: sums of constant size.
struct SumMemory : Memory {
  Tensor sums;  ///< [B, H, f, d + 1]: of phi(k) [v, 1]^T, with all monomials of the features where f(s) needs
                ///< them
  void fields(Fields& f) override { f("sums", sums); }
};

/// y_i = sum_j f(s_ij) v_j / (sum_j f(s_ij) + epsilon) with s_ij = phi(q_i) . phi(k_j) and a polynomial f, in
/// time and memory linear in the length. Katharopoulos et al. 2020, arXiv 2006.16236, equations 5, 6, 9-12,
/// where f(s) = s.
class KernelizedAttention : public HeadedAttention {
 public:
  /// f(s) = s.
  KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng);
  /// f, epsilon and what is done to features as `terms` say; mask, lengths and draws are the call's.
  KernelizedAttention(const AttentionConfig& config, const kernel::FastmaxTerms& terms, Rng& rng);
  std::unique_ptr<Memory> start() const override { return std::make_unique<SumMemory>(); }

 protected:
  virtual Tensor feature(const Tensor& x) const { return x; }  ///< [B, H, T, d] -> [B, H, T, f]
  /// Queries and keys (empty where none are given) to features; feature() of both unless a variant tells them
  /// apart.
  virtual Heads features(Heads heads, const Attend& call) const;
  /// Drops what the variant drops of features while training, or sets terms.dropout; nothing unless
  /// overridden.
  virtual Heads noisy(Heads features, kernel::FastmaxTerms& terms, Rng& noise) const;
  Tensor attend(Heads heads, const Attend& call) override;
  /// Fails on a bias, on lengths for another batch, and on causal queries without keys of their own.
  static void check(const Heads& heads, const Attend& call);
  const kernel::FastmaxTerms& polynomial() const { return terms_; }

 private:
  Tensor step(const Heads& phi, kernel::FastmaxTerms terms, const Attend& call) const;
  void show(const Heads& phi, const Attend& call) const;
  kernel::FastmaxTerms terms_;
};

/// 1 where x [..., 1] is 0, 0 elsewhere, without a gradient: what a sum over no keys is divided by.
Tensor one_for_zero(const Tensor& x);
/// What the fused kernel divides a row by, given its sum of weights [..., 1]: with epsilon and guard, and 1
/// where that is 0.
Tensor divisor(const Tensor& total, const kernel::FastmaxTerms& terms);
/// What the fused kernel does to queries and keys first, in plain ops: [B, H, T, d].
Tensor prepared(const Tensor& x, const kernel::FastmaxTerms& terms);
/// The weights of all pairs of features in plain ops, [B, H, Tq, Tk]: for looking.
Tensor polynomial_map(const Tensor& q, const Tensor& k, const kernel::FastmaxTerms& terms, const Mask& mask,
                      int64_t first_query);

}  // namespace heed
