// Sums, means and maxima.
#include "heed/core/kernels/norm/reduce.h"

#include <limits>

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/cumulative_exp_sum.h"
#include "heed/core/launch.h"

namespace heed {

namespace {

/// sum_to() under the name of the op that was called.
Tensor summed(const char* op, const Tensor& x, const Shape& shape) {
  check_not_empty(op, x);
  if (x.shape() == shape) return x;
  check_float(op, x);
  Shape kept;  // `shape` with leading ones, so that the ranks agree
  for (int64_t i = shape.rank(); i < x.rank(); ++i) kept.push_back(1);
  for (int64_t extent : shape) kept.push_back(extent);
  if (shape.rank() > x.rank() || !(broadcast(op, kept, x.shape()) == x.shape())) {
    fail(op, ": ", x.shape(), " is not a broadcast of ", shape, ".");
  }
  const Tensor y = empty_like(x, kept);
  launch<kernel::Sum>(x.device(), x, y);
  return record(op, view::reshape(y, shape), {&x}, [from = x.shape(), kept](const Tensor& dy) -> Gradients {
    return {view::expand(view::reshape(contiguous(dy), kept), from)};
  });
}

/// sum() over an axis under the name of the op that was called.
Tensor summed(const char* op, const Tensor& x, int64_t axis) {
  Shape shape = x.shape();
  shape[axis_of(op, x, axis)] = 1;
  return summed(op, x, shape);
}

/// Fails unless x is of f32 or f64 and has an element along the axis, which is returned as counted from 0.
int64_t checked_axis(const char* op, const Tensor& x, int64_t axis) {
  check_float(op, x);
  const int64_t from_start = axis_of(op, x, axis);
  if (x.extent(from_start) == 0) fail(op, ": axis ", axis, " of ", x.shape(), " has no element.");
  return from_start;
}

}  // namespace

Tensor sum_to(const Tensor& x, const Shape& shape) { return summed("sum_to", x, shape); }

Tensor sum(const Tensor& x) { return summed("sum", x, Shape{}); }

Tensor mean(const Tensor& x) {
  check_float("mean", x);
  if (x.size() == 0) fail("mean: ", x.shape(), " has no element.");
  return summed("mean", x, Shape{}) / static_cast<double>(x.size());
}

Tensor sum(const Tensor& x, int64_t axis) { return summed("sum", x, axis); }

Tensor mean(const Tensor& x, int64_t axis) {
  axis = checked_axis("mean", x, axis);
  return summed("mean", x, axis) / static_cast<double>(x.extent(axis));
}

Tensor max(const Tensor& x, int64_t axis) {
  axis = checked_axis("max", x, axis);
  Shape shape = x.shape();
  shape[axis] = 1;
  const Tensor y = empty_like(x, shape);
  const Tensor index(shape, DType::i64, x.device());
  launch<kernel::Max>(x.device(), x, y, index);
  return record("max", y, {&x}, [index, from = x.shape()](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(dy, from);
    launch<kernel::MaxBack>(dy.device(), index, contiguous(dy), dx);
    return {dx};
  });
}

Tensor min(const Tensor& x, int64_t axis) {
  axis = checked_axis("min", x, axis);
  return -max(-x, axis);
}

Tensor log_sum_exp(const Tensor& x, int64_t axis) {
  axis = checked_axis("log_sum_exp", x, axis);
  const Tensor given = x.detach();
  // A shift of -inf would make NaN of a row of -inf, whose exponentials are 0 with any other.
  const Tensor shift = maximum(max(given, axis), -std::numeric_limits<float>::max());
  const Tensor exponentials = exp(given - shift), total = sum(exponentials, axis);
  return record("log_sum_exp", log(total) + shift, {&x},
                [exponentials, total](const Tensor& dy) -> Gradients {
                  const Tensor divisor = maximum(total, std::numeric_limits<float>::min());
                  return {exponentials * (dy / divisor)};
                });
}

Tensor cumulative_exp_sum(const Tensor& x, Tensor& running_max) {
  if (x.rank() != 4) fail("cumulative_exp_sum: x is ", x.shape(), "; it must be [B, H, T, f].");
  const Tensor from = rows(x), y = empty_like(x);
  running_max = empty_like(x);
  launch<kernel::CumulativeExpSum>(x.device(), from, running_max, y);
  return record("cumulative_exp_sum", y, {&x}, [from, running_max](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(from);
    launch<kernel::CumulativeExpSumBack>(from.device(), from, running_max, rows(dy), dx);
    return {dx};
  });
}

Tensor cumulative_sum(const Tensor& x, int64_t axis) {
  axis = axis_of("cumulative_sum", x, axis);
  const auto scan = [axis](const Tensor& from, bool reverse) {
    const Tensor to = empty_like(from);
    launch<kernel::CumulativeSum>(from.device(), from, axis, reverse, to);
    return to;
  };
  return record("cumulative_sum", scan(x, false), {&x},
                [scan](const Tensor& dy) -> Gradients { return {scan(dy, true)}; });
}

}  // namespace heed
