// Arithmetic of two tensors, and of a tensor with numbers.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// F(a, b); `is_activation`: both may be bf16.
template <class F>
Tensor zip(const char* op, const Tensor& a, const Tensor& b, bool is_activation = false) {
  agree(op, a, b);
  is_activation ? check_activation(op, a) : check_float(op, a);
  const Tensor out = empty_like(a, broadcast(op, a.shape(), b.shape()));
  launch<kernel::Zip<F>>(a.device(), view::expand(a, out.shape()), view::expand(b, out.shape()), out);
  return out;
}

bool wants_gradient(const Tensor& x) { return x.node() != nullptr; }

/// a + b or a - b; `sign` is the derivative by b.
template <class F>
Tensor sum_of(const char* op, const Tensor& a, const Tensor& b, int sign) {
  return record(op, zip<F>(op, a, b), {&a, &b},
                [sa = a.shape(), sb = b.shape(), wants_a = wants_gradient(a), wants_b = wants_gradient(b),
                 sign](const Tensor& dy) {
                  Gradients gradients(2);
                  if (wants_a) gradients[0] = sum_to(dy, sa);
                  if (wants_b) gradients[1] = sign < 0 ? -sum_to(dy, sb) : sum_to(dy, sb);
                  return gradients;
                });
}

/// The larger of a and b, or with `is_minimum` the smaller; where they are equal, a gets the gradient.
template <class F>
Tensor extremum(const char* op, const Tensor& a, const Tensor& b, bool is_minimum) {
  return record(op, zip<F>(op, a, b), {&a, &b},
                [op, is_minimum, a = a.detach(), b = b.detach()](const Tensor& dy) -> Gradients {
                  const Tensor da = dy * (is_minimum ? zip<NotLess>(op, b, a) : zip<NotLess>(op, a, b));
                  return {sum_to(da, a.shape()), sum_to(dy - da, b.shape())};
                });
}

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) { return sum_of<Add>("add", a, b, 1); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sum_of<Subtract>("subtract", a, b, -1); }

Tensor operator*(const Tensor& a, const Tensor& b) {
  // a is kept only where b needs a gradient, and b only where a does.
  return record("multiply", zip<Multiply>("multiply", a, b, /*is_activation=*/true), {&a, &b},
                [a = wants_gradient(b) ? a.detach() : Tensor(), b = wants_gradient(a) ? b.detach() : Tensor(),
                 sa = a.shape(), sb = b.shape()](const Tensor& dy) -> Gradients {
                  return {b ? sum_to(dy * b, sa) : Tensor(), a ? sum_to(dy * a, sb) : Tensor()};
                });
}

Tensor operator/(const Tensor& a, const Tensor& b) {
  const Tensor y = zip<Divide>("divide", a, b);
  return record("divide", y, {&a, &b},
                [y = wants_gradient(b) ? y : Tensor(), b = b.detach(), sa = a.shape(),
                 wants_a = wants_gradient(a)](const Tensor& dy) -> Gradients {
                  const Tensor da = dy / b;
                  return {wants_a ? sum_to(da, sa) : Tensor(), y ? -sum_to(da * y, b.shape()) : Tensor()};
                });
}

Tensor maximum(const Tensor& a, const Tensor& b) { return extremum<Maximum>("maximum", a, b, false); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremum<Minimum>("minimum", a, b, true); }

Tensor minimum(const Tensor& x, double limit) {
  check_float("minimum", x);
  return minimum(x, Tensor::full(Shape{}, limit, x.dtype(), x.device()));
}

Tensor maximum(const Tensor& x, double limit) {
  check_float("maximum", x);
  return maximum(x, Tensor::full(Shape{}, limit, x.dtype(), x.device()));
}

namespace {

/// affine() under the name of the operator that was written.
Tensor affine_as(const char* op, const Tensor& x, double scale, double shift) {
  check_float(op, x);
  const Tensor y = empty_like(x);
  launch<kernel::Affine>(x.device(), x, scale, shift, y);
  return record(op, y, {&x},
                [op, scale](const Tensor& dy) -> Gradients { return {affine_as(op, dy, scale, 0)}; });
}

}  // namespace

Tensor affine(const Tensor& x, double scale, double shift) { return affine_as("affine", x, scale, shift); }
Tensor operator-(const Tensor& x) { return affine_as("negate", x, -1, 0); }
Tensor operator+(const Tensor& x, double c) { return affine_as("add", x, 1, c); }
Tensor operator-(const Tensor& x, double c) { return affine_as("subtract", x, 1, -c); }
Tensor operator*(const Tensor& x, double c) { return affine_as("multiply", x, c, 0); }
Tensor operator*(double c, const Tensor& x) { return affine_as("multiply", x, c, 0); }
Tensor operator/(const Tensor& x, double c) { return affine_as("divide", x, 1 / c, 0); }
Tensor operator+(double c, const Tensor& x) { return affine_as("add", x, 1, c); }
Tensor operator-(double c, const Tensor& x) { return affine_as("subtract", x, -1, c); }

Tensor operator/(double c, const Tensor& x) {
  check_float("divide", x);
  return Tensor::full(Shape{}, c, x.dtype(), x.device()) / x;
}

Tensor pow(const Tensor& x, double exponent) {
  check_float("pow", x);
  const Tensor y = empty_like(x);
  launch<kernel::Power>(x.device(), x, exponent, y);
  return record("pow", y, {&x}, [x = x.detach(), exponent](const Tensor& dy) -> Gradients {
    if (exponent == 0) return {affine(dy, 0, 0)};
    return {dy * pow(x, exponent - 1) * exponent};
  });
}

namespace {

void check_mask(const Tensor& mask) {
  check_not_empty("where", mask);
  if (mask.dtype() != DType::u8)
    fail("where: the mask is ", mask.dtype(), "; it must be u8. Comparisons such as less(a, b) give one.");
}

/// Numbers of `x` where the mask is not zero, else `otherwise`; detached.
Tensor chosen(const Tensor& mask, const Tensor& x, double otherwise) {
  const Tensor y = empty_like(x);
  launch<kernel::Select>(x.device(), view::expand(mask, x.shape()), x, otherwise, y);
  return y;
}

}  // namespace

Tensor where(const Tensor& mask, const Tensor& x, double otherwise) {
  check_mask(mask);
  check_float("where", x);
  if (!(broadcast("where", mask.shape(), x.shape()) == x.shape()))
    fail("where: a mask ", mask.shape(), " for x ", x.shape(), ". It must broadcast to x.");
  return record("where", chosen(mask, x, otherwise), {&x},
                [mask = mask.detach()](const Tensor& dy) -> Gradients { return {chosen(mask, dy, 0)}; });
}

Tensor where(const Tensor& mask, const Tensor& x, const Tensor& y) {
  check_mask(mask);
  agree("where", x, y);
  check_float("where", x);
  const Shape shape = broadcast("where", broadcast("where", x.shape(), y.shape()), mask.shape());
  const Tensor out = empty_like(x, shape);
  launch<kernel::Choose>(x.device(), view::expand(mask, shape), view::expand(x, shape),
                         view::expand(y, shape), out);
  return record("where", out, {&x, &y},
                [mask = mask.detach(), sx = x.shape(), sy = y.shape()](const Tensor& dy) -> Gradients {
                  const Tensor dx = chosen(mask, dy, 0);
                  return {sum_to(dx, sx), sum_to(dy - dx, sy)};
                });
}

}  // namespace heed
