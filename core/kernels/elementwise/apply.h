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
/// repeat); out is contiguous. All three may be bf16, computed in f32.
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

/// y += x, of one shape, both possibly bf16; y is contiguous. It adds up the gradients of an input that is used twice.
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

/// y = a where mask (u8) is not zero, else b. mask, a and b are expanded to the shape of y, which is
/// contiguous.
struct Choose {
  template <Isa>
  static void cpu(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y);
  static void cuda(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y);
};

/// y = x^exponent, as pow() of C: NaN for a negative x and an exponent that is not whole. y is contiguous.
struct Power {
  template <Isa>
  static void cpu(const Tensor& x, double exponent, const Tensor& y);
  static void cuda(const Tensor& x, double exponent, const Tensor& y);
};

/// out (u8) = 1 where F(a, b) holds, else 0, for F of Comparisons. a and b have one dtype, any but bf16, and
/// are expanded to the shape of out, which is contiguous.
template <class F>
struct Compare {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& b, const Tensor& out);
  static void cuda(const Tensor& a, const Tensor& b, const Tensor& out);
};

/// count (i64 [1]) += number of elements of x that are NaN or infinite.
struct CountNonFinite {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& count);
  static void cuda(const Tensor& x, const Tensor& count);
};

/// Functions of the elements at one index: what the kernels above apply.
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

struct EitherOf {
  HEED_BOTH auto operator()(uint8_t mask, auto a, auto b) const { return mask != 0 ? a : b; }
};

template <class T>
struct RaisedTo {
  T exponent;
  HEED_BOTH T operator()(T x) const { return std::pow(x, exponent); }
};

template <class F>
struct Holds {
  HEED_BOTH uint8_t operator()(auto a, auto b) const { return F::value(a, b) ? 1 : 0; }
};

}  // namespace elementwise

/// visit() for the types that numbers are compared in. Fails for bf16.
template <class F>
void visit_comparable(DType dtype, F&& f) {
  if (dtype == DType::i32) return f(Type<int32_t>{});
  if (dtype == DType::i64) return f(Type<int64_t>{});
  if (dtype == DType::u8) return f(Type<uint8_t>{});
  visit_float("compare", dtype, f);
}

}  // namespace heed::kernel
