// Filling and copying, between any strides and dtypes.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Every element of x becomes `value`, converted to its dtype. x may be a view with gaps.
struct Fill {
  template <Isa>
  static void cpu(const Tensor& x, double value);
  static void cuda(const Tensor& x, double value);
};

/// to = from, converted to the dtype of `to`. Same shape, any strides; `to` has no stride of 0.
struct Copy {
  template <Isa>
  static void cpu(const Tensor& from, const Tensor& to);
  static void cuda(const Tensor& from, const Tensor& to);
};

}  // namespace heed::kernel
