// Changes of numbers in place.
#include "heed/autograd/in_place.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// Fails where x is the result of a recorded op; else marks its numbers as changed.
void note_change(const char* op, const Tensor& x) {
  check_not_empty(op, x);
  if (x.node() && !x.node()->leaf)
    fail(op, ": x ", x.shape(), " is the result of ", x.node()->op,
         ", which a gradient needs. Change a parameter, or x.detach().");
  ++x.storage()->version;
}

/// Fails unless y broadcasts to the shape of x.
void check_broadcasts(const char* op, const Tensor& x, const Tensor& y) {
  check_not_empty(op, x);
  check_not_empty(op, y);
  if (!(broadcast(op, y.shape(), x.shape()) == x.shape()))
    fail(op, ": y ", y.shape(), " for x ", x.shape(), ". It must broadcast to x.");
}

}  // namespace

void copy_(const Tensor& x, const Tensor& y) {
  check_broadcasts("copy_", x, y);
  note_change("copy_", x);
  const Tensor moved = y.detach().to(x.device());
  launch<kernel::Copy>(x.device(), view::expand(moved, x.shape()), x.detach());
}

void fill_(const Tensor& x, double value) {
  note_change("fill_", x);
  launch<kernel::Copy>(
      x.device(), view::expand(Tensor::full(Shape{}, value, x.dtype(), x.device()), x.shape()), x.detach());
}

void add_(const Tensor& x, const Tensor& y, double scale) {
  check_broadcasts("add_", x, y);
  check_float("add_", x);
  note_change("add_", x);
  const NoGrad no_grad;
  const Tensor scaled = cast(scale == 1 ? y : y * scale, x.dtype()).to(x.device());
  launch<kernel::Accumulate>(x.device(), view::expand(scaled.detach(), x.shape()), x.detach());
}

void scale_(const Tensor& x, double scale) {
  check_float("scale_", x);
  note_change("scale_", x);
  launch<kernel::Affine>(x.device(), x.detach(), scale, 0.0, x.detach());
}

}  // namespace heed
