// Filling and copying of tensors, between any strides and dtypes.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// x[i] = value for every element, converted to the dtype of x. x may have any strides.
struct Fill {
  template <Isa>
  static void cpu(const Tensor& x, double value);
  static void cuda(const Tensor& x, double value);
};

/// to[i] = from[i] for every element, converted to the dtype of `to`. Both have the same shape and any
/// strides; `to` has no stride of 0.
struct Copy {
  template <Isa>
  static void cpu(const Tensor& from, const Tensor& to);
  static void cuda(const Tensor& from, const Tensor& to);
};

}  // namespace heed::kernel
