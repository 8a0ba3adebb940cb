// Rung 2': maps that factor; a variant overrides feature().
#pragma once

#include "attention/headed.h"

namespace heed {

/// What a kernelized attention remembers: sums of constant size.
struct SumMemory final : Memory {
  Tensor sums;  ///< [B, H, f, d + 1]: of phi(k) [v, 1]^T
  void fields(Fields& f) override { f("sums", sums); }
};

/// y_i = phi(q_i) . sum_j phi(k_j) v_j / (phi(q_i) . sum_j phi(k_j) + epsilon), in time and memory linear in
/// the length. The values carry a column of ones, so that numerator and denominator are one product.
/// Katharopoulos et al. 2020, arXiv 2006.16236, equations 5, 6, 9-12.
class KernelizedAttention : public HeadedAttention {
 public:
  KernelizedAttention(const AttentionConfig& config, double epsilon, Rng& rng);
  std::unique_ptr<Memory> start() const override { return std::make_unique<SumMemory>(); }

 protected:
  virtual Tensor feature(const Tensor& x) const = 0;  ///< [B, H, T, d] -> [B, H, T, f]
  Tensor attend(Heads heads, const Attend& call) override;

 private:
  Tensor step(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Attend& call) const;
  void show(const Tensor& phi_q, const Tensor& phi_k, const Attend& call) const;
  double epsilon_;
};

}  // namespace heed
