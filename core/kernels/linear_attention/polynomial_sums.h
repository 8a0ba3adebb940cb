// The state of PolynomialAttention: sums over keys of monomials of k times [v, 1].
#pragma once

#include "heed/core/kernels/linear_attention/polynomial_attention.h"

namespace heed::kernel {

/// state [B, H, f, dv + 1] = sum over visible keys j of m(k_j) [v_j, 1]^T, where m are all monomials of the
/// mapped key up to degree p. k [B, H, T, d], v [B, H, T, dv].
struct PolynomialSums {
  template <Isa>
  static void cpu(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& state);
  static void cuda(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& state);
};

/// Writes dk and dv, shaped as k and v, from dstate.
struct PolynomialSumsBack {
  template <Isa>
  static void cpu(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& dstate,
                  const Tensor& dk, const Tensor& dv);
  static void cuda(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& dstate,
                   const Tensor& dk, const Tensor& dv);
};

}  // namespace heed::kernel
