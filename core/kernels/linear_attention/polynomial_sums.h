// What Fastmax keeps of keys and values: sums of monomials of k times [v, 1].
#pragma once

#include "core/kernels/fastmax.h"

namespace heed::kernel {

/// state [B, H, f, dv + 1] = sum over the keys that are seen of m(k_j) [v_j, 1]^T, with all monomials m of
/// the prepared key up to degree p. k [B, H, T, d], v [B, H, T, dv].
struct FastmaxSums {
  template <Isa>
  static void cpu(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& state);
  static void cuda(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& state);
};

/// dk and dv (views like k and v; overwritten) from dstate.
struct FastmaxSumsBack {
  template <Isa>
  static void cpu(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& dstate,
                  const Tensor& dk, const Tensor& dv);
  static void cuda(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& dstate,
                   const Tensor& dk, const Tensor& dv);
};

}  // namespace heed::kernel
