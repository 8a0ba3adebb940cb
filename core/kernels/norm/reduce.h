// Reductions. The output has the rank of the input, with extent 1 along the axes that are summed away.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y = sum of x over the axes where y has extent 1 and x has more. Added in an order fixed by the shape. x
/// may be bf16; y is f32 then.
struct Sum {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& y);
};

/// y = the largest x over those axes; `index` (i64, shape of y) is the first place it stands, counted along
/// the reduced axes in row-major order.
struct Max {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y, const Tensor& index);
  static void cuda(const Tensor& x, const Tensor& y, const Tensor& index);
};

/// dx = dy at `index`, zero elsewhere: the gradient of Max.
struct MaxBack {
  template <Isa>
  static void cpu(const Tensor& index, const Tensor& dy, const Tensor& dx);
  static void cuda(const Tensor& index, const Tensor& dy, const Tensor& dx);
};

/// y_t = x_0 + ... + x_t along an axis; `reverse` sums from the end. y contiguous.
struct CumulativeSum {
  template <Isa>
  static void cpu(const Tensor& x, int64_t axis, bool reverse, const Tensor& y);
  static void cuda(const Tensor& x, int64_t axis, bool reverse, const Tensor& y);
};

/// total (f64 [1]) = sum of squares of x, contiguous; NaN where a number of `checked` is not finite.
/// `checked` has the dtype of x and is contiguous, or empty.
struct SquareSum {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& checked, const Tensor& total);
  static void cuda(const Tensor& x, const Tensor& checked, const Tensor& total);
};

}  // namespace heed::kernel
