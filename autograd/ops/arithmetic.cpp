// Arithmetic of two tensors, and of a tensor with numbers.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

template <class F>
Tensor zip(const char* op, const Tensor& a, const Tensor& b) {
  agree(op, a, b);
  const Tensor out = empty_like(a, broadcast(op, a.shape(), b.shape()));
  launch<kernel::Zip<F>>(a.device(), view::expand(a, out.shape()), view::expand(b, out.shape()), out);
  return out;
}

bool wants(const Tensor& x) { return x.node() != nullptr; }

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) {
  return record(
      "add", zip<Add>("add", a, b), {&a, &b},
      [sa = a.shape(), sb = b.shape(), wa = wants(a), wb = wants(b)](const Tensor& dy) -> Gradients {
        return {wa ? sum_to(dy, sa) : Tensor(), wb ? sum_to(dy, sb) : Tensor()};
      });
}

Tensor operator-(const Tensor& a, const Tensor& b) {
  return record(
      "subtract", zip<Subtract>("subtract", a, b), {&a, &b},
      [sa = a.shape(), sb = b.shape(), wa = wants(a), wb = wants(b)](const Tensor& dy) -> Gradients {
        return {wa ? sum_to(dy, sa) : Tensor(), wb ? -sum_to(dy, sb) : Tensor()};
      });
}

Tensor operator*(const Tensor& a, const Tensor& b) {
  // Only the factor that the other's gradient needs is kept.
  return record("multiply", zip<Multiply>("multiply", a, b), {&a, &b},
                [a = wants(b) ? a.detach() : Tensor(), b = wants(a) ? b.detach() : Tensor(), sa = a.shape(),
                 sb = b.shape()](const Tensor& dy) -> Gradients {
                  return {b ? sum_to(dy * b, sa) : Tensor(), a ? sum_to(dy * a, sb) : Tensor()};
                });
}

Tensor operator/(const Tensor& a, const Tensor& b) {
  const Tensor y = zip<Divide>("divide", a, b);
  return record("divide", y, {&a, &b},
                [y = wants(b) ? y : Tensor(), b = b.detach(), sa = a.shape(),
                 wa = wants(a)](const Tensor& dy) -> Gradients {
                  const Tensor da = dy / b;
                  return {wa ? sum_to(da, sa) : Tensor(), y ? -sum_to(da * y, b.shape()) : Tensor()};
                });
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  return record("maximum", zip<Maximum>("maximum", a, b), {&a, &b},
                [a = a.detach(), b = b.detach()](const Tensor& dy) -> Gradients {
                  const Tensor da = dy * zip<NotLess>("maximum", a, b);
                  return {sum_to(da, a.shape()), sum_to(dy - da, b.shape())};
                });
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  return record("minimum", zip<Minimum>("minimum", a, b), {&a, &b},
                [a = a.detach(), b = b.detach()](const Tensor& dy) -> Gradients {
                  const Tensor da = dy * zip<NotLess>("minimum", b, a);
                  return {sum_to(da, a.shape()), sum_to(dy - da, b.shape())};
                });
}

Tensor minimum(const Tensor& x, double most) {
  return minimum(x, Tensor::full(Shape{}, most, x.dtype(), x.device()));
}

Tensor maximum(const Tensor& x, double least) {
  return maximum(x, Tensor::full(Shape{}, least, x.dtype(), x.device()));
}

Tensor affine(const Tensor& x, double scale, double shift) {
  const Tensor y = empty_like(x);
  launch<kernel::Affine>(x.device(), x, scale, shift, y);
  return record("affine", y, {&x}, [scale](const Tensor& dy) -> Gradients { return {affine(dy, scale, 0)}; });
}

Tensor where(const Tensor& mask, const Tensor& x, double otherwise) {
  if (mask.dtype() != DType::u8) fail("select: the mask is ", mask.dtype(), "; it must be u8.");
  const auto choose = [mask = mask.detach()](const Tensor& from, double other) {
    const Tensor y = empty_like(from);
    launch<kernel::Select>(from.device(), view::expand(mask, from.shape()), from, other, y);
    return y;
  };
  return record("select", choose(x, otherwise), {&x},
                [choose](const Tensor& dy) -> Gradients { return {choose(dy, 0)}; });
}

}  // namespace heed
