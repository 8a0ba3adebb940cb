// Elementwise kernels over one or two tensors.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/kernels/elementwise/functions.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y = F(x) for F of UnaryFunctions. x may have any strides; y is contiguous.
template <class F>
struct Map {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& y);
};

/// dx = F'(x) dy, from x, y = F(x) and dy, all of one shape; dx is contiguous.
template <class F>
struct MapBack {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx);
  static void cuda(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx);
};

/// out = F(a, b) for F of BinaryFunctions. a and b are expanded to the shape of out (stride 0 where they
/// repeat); out is contiguous.
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

/// y += x, of one shape; y is contiguous. It adds up the gradients of an input that is used twice.
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

/// count (i64 [1]) += number of elements of x that are NaN or infinite.
struct CountNonFinite {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& count);
  static void cuda(const Tensor& x, const Tensor& count);
};

/// Functions of the elements at one index: what Map, MapBack, Zip, Affine, Accumulate and Select apply.
namespace elementwise {

template <class F>
struct Value {
  HEED_BOTH auto operator()(auto... x) const { return F::value(x...); }
};

template <class F>
struct Gradient {
  HEED_BOTH auto operator()(auto x, auto y, auto dy) const { return F::gradient(x, y, dy); }
};

template <class T>
struct ScaleAndShift {
  T scale, shift;
  HEED_BOTH T operator()(T x) const { return scale * x + shift; }
};

struct Increment {
  HEED_BOTH auto operator()(auto x, auto y) const { return y + x; }
};

template <class T>
struct SelectOr {
  T otherwise;
  HEED_BOTH T operator()(uint8_t mask, T x) const { return mask != 0 ? x : otherwise; }
};

}  // namespace elementwise

}  // namespace heed::kernel
