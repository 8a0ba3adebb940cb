// Gradients of Fastmax from q, k, v, the output and the sums of weights: nothing else is kept.
#pragma once

#include "core/kernels/fastmax.h"

namespace heed::kernel {

/// Gradients (views like the inputs; overwritten) of a call of Fastmax from dout. dk and dv are empty where k
/// and v are, dstart [B, H, f, dv + 1] where start is.
struct FastmaxBack {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start,
                  const FastmaxTerms& terms, const Tensor& out, const Tensor& sums, const Tensor& dout,
                  const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dstart);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start,
                   const FastmaxTerms& terms, const Tensor& out, const Tensor& sums, const Tensor& dout,
                   const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dstart);
};

}  // namespace heed::kernel
