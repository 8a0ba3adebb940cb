// Softmax and log-softmax of rows; -inf masks an element.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y = softmax of each row of the last axis. A row in which every x is -inf becomes zeros, not NaN.
/// Contiguous.
struct Softmax {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& y);
};

/// dx = y (dy - sum(y dy)) of each row. Contiguous.
struct SoftmaxBack {
  template <Isa>
  static void cpu(const Tensor& y, const Tensor& dy, const Tensor& dx);
  static void cuda(const Tensor& y, const Tensor& dy, const Tensor& dx);
};

/// y = x - log sum exp(x) of each row. Contiguous.
struct LogSoftmax {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& y);
};

/// dx = dy - exp(y) sum(dy) of each row. Contiguous.
struct LogSoftmaxBack {
  template <Isa>
  static void cpu(const Tensor& y, const Tensor& dy, const Tensor& dx);
  static void cuda(const Tensor& y, const Tensor& dy, const Tensor& dx);
};

}  // namespace heed::kernel
