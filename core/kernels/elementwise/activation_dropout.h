// The activation of a feed-forward network and the dropout behind it, in one pass.
#pragma once

#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/elementwise/functions.h"

namespace heed::kernel {

/// y = dropout(F(x)) for F of DropoutActivations; contiguous.
template <class F>
struct ActivationDropout {
  template <Isa>
  static void cpu(const Tensor& x, const DropoutMask& mask, const Tensor& y);
  static void cuda(const Tensor& x, const DropoutMask& mask, const Tensor& y);
};

/// dx = F'(x) dropout(dy), from the x and the mask of ActivationDropout; contiguous.
template <class F>
struct ActivationDropoutBack {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& dy, const DropoutMask& mask, const Tensor& dx);
  static void cuda(const Tensor& x, const Tensor& dy, const DropoutMask& mask, const Tensor& dx);
};

/// The functions that ActivationDropout and its gradient are compiled for; their derivatives need x alone.
using DropoutActivations = FunctionList<Relu, Gelu, GeluTanh, Silu>;

}  // namespace heed::kernel
