// Elementwise kernels over one or two tensors.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/kernels/elementwise/functions.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y = F(x). Same shape; y contiguous, x any strides. F is one of the unary functions of elementwise.h.
template <class F>
struct Map {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& y);
};

/// dx = F'(x) dy, from x, y = F(x) and dy. All of one shape; dx contiguous.
template <class F>
struct MapBack {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx);
  static void cuda(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx);
};

/// out = F(a, b). a and b are expanded to the shape of out (stride 0 where they repeat); out contiguous.
template <class F>
struct Zip {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& b, const Tensor& out);
  static void cuda(const Tensor& a, const Tensor& b, const Tensor& out);
};

/// y = scale x + shift. y may be x itself.
struct Affine {
  template <Isa>
  static void cpu(const Tensor& x, double scale, double shift, const Tensor& y);
  static void cuda(const Tensor& x, double scale, double shift, const Tensor& y);
};

/// y += x; the same shape, y contiguous. How gradients of shared inputs meet.
struct Accumulate {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& y);
};

/// y = x where mask (u8, expanded) is not zero, else `otherwise`.
struct Select {
  template <Isa>
  static void cpu(const Tensor& mask, const Tensor& x, double otherwise, const Tensor& y);
  static void cuda(const Tensor& mask, const Tensor& x, double otherwise, const Tensor& y);
};

/// bad += number of elements of x that are not finite; bad is i64 [1].
struct CountBad {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& bad);
  static void cuda(const Tensor& x, const Tensor& bad);
};

}  // namespace heed::kernel
