// Views and copies that change the shape, not the numbers.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

Tensor contiguous(const Tensor& x) {
  if (x.contiguous()) return x;
  const Tensor y = empty_like(x);
  launch<kernel::Copy>(x.device(), x, y);
  return record("contiguous", y, {&x}, [](const Tensor& dy) -> Gradients { return {dy}; });
}

namespace {

/// x [..., n m] with gaps between rows as [..., n, m], or the reverse: a view; empty for other shapes.
Tensor with_last_axis_cut(const Tensor& x, const Shape& shape) {
  const bool cuts = shape.rank() == x.rank() + 1;
  const Shape &longer = cuts ? shape : x.shape(), &shorter = cuts ? x.shape() : shape;
  if (longer.rank() != shorter.rank() + 1 || x.rank() < 1 || x.strides()[-1] != 1) return {};
  const int64_t kept = shorter.rank() - 1, width = longer[-1];
  for (int64_t axis = 0; axis < kept; ++axis) {
    if (longer[axis] != shorter[axis]) return {};
  }
  if (!cuts && longer[kept] > 1 && x.strides()[kept] != width) return {};
  Strides strides;
  for (int64_t axis = 0; axis < kept; ++axis) strides.push_back(x.strides()[axis]);
  if (cuts) strides.push_back(width);
  strides.push_back(1);
  return x.seen_as(shape, strides, x.offset());
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& given) {
  check_not_empty("reshape", x);
  const Shape shape = resolved(given, x.size());
  const Tensor viewed = x.contiguous() ? Tensor() : with_last_axis_cut(x, shape);
  if (viewed) {
    return record("reshape", viewed, {&x},
                  [from = x.shape()](const Tensor& dy) -> Gradients { return {reshape(dy, from)}; });
  }
  const Tensor dense = contiguous(x);
  return record("reshape", view::reshape(dense, shape), {&dense},
                [from = x.shape()](const Tensor& dy) -> Gradients { return {reshape(dy, from)}; });
}

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  a = axis_of("transpose", x, a);
  b = axis_of("transpose", x, b);
  return record("transpose", view::transpose(x, a, b), {&x},
                [a, b](const Tensor& dy) -> Gradients { return {view::transpose(dy, a, b)}; });
}

Tensor permute(const Tensor& x, std::initializer_list<int64_t> axes) {
  for (const int64_t axis : axes) axis_of("permute", x, axis);
  std::vector<int64_t> back(axes.size());
  int64_t to = 0;
  const Tensor y = view::permute(x, std::span(axes.begin(), axes.size()));
  for (int64_t axis : axes) back[static_cast<size_t>(x.shape().checked(axis))] = to++;
  return record("permute", y, {&x},
                [back](const Tensor& dy) -> Gradients { return {view::permute(dy, back)}; });
}

Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  axis = axis_of("slice", x, axis);
  return record("slice", view::slice(x, axis, begin, end), {&x},
                [shape = x.shape(), axis, begin, end](const Tensor& dy) -> Gradients {
                  const Tensor dx = Tensor::zeros(shape, dy.dtype(), dy.device());
                  launch<kernel::Copy>(dy.device(), dy, view::slice(dx, axis, begin, end));
                  return {dx};
                });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  return record("expand", view::expand(x, shape), {&x},
                [from = x.shape()](const Tensor& dy) -> Gradients { return {sum_to(dy, from)}; });
}

namespace {

/// select() under the name that was written.
Tensor selected(const char* op, const Tensor& x, int64_t axis, int64_t index) {
  axis = axis_of(op, x, axis);
  const int64_t extent = x.extent(axis), i = index < 0 ? index + extent : index;
  if (i < 0 || i >= extent)
    fail(op, ": index ", index, " of axis ", axis, " of ", x.shape(), ". It must be ", -extent, " to ",
         extent - 1, ".");
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape.erase(axis);
  strides.erase(axis);
  const Tensor y = x.seen_as(shape, strides, x.offset() + i * x.strides()[axis]);
  return record(op, y, {&x}, [from = x.shape(), axis, i](const Tensor& dy) -> Gradients {
    const Tensor dx = Tensor::zeros(from, dy.dtype(), dy.device());
    launch<kernel::Copy>(dy.device(), dy, select(dx, axis, i));
    return {dx};
  });
}

}  // namespace

Tensor select(const Tensor& x, int64_t axis, int64_t index) { return selected("select", x, axis, index); }

Tensor Tensor::operator[](int64_t index) const { return selected("operator[]", *this, 0, index); }

Tensor stack(std::span<const Tensor> parts, int64_t axis) {
  if (parts.empty()) fail("stack: nothing to join. Give at least one tensor.");
  const int64_t rank = parts[0].rank() + 1;
  if (axis < -rank || axis >= rank)
    fail("stack: axis ", axis, " of parts ", parts[0].shape(), ". It must be ", -rank, " to ", rank - 1, ".");
  if (axis < 0) axis += rank;
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) {
    agree("stack", parts[0], part);
    if (!(part.shape() == parts[0].shape()))
      fail("stack: ", part.shape(), " beside ", parts[0].shape(), ". All parts must have one shape.");
    Shape shape;
    for (int64_t i = 0; i < rank; ++i) shape.push_back(i == axis ? 1 : part.extent(i < axis ? i : i - 1));
    rows.push_back(reshape(part, shape));
  }
  return concat(rows, axis);
}

Tensor concat(std::span<const Tensor> parts, int64_t axis) {
  if (parts.empty()) fail("concat: nothing to join. Give at least one tensor.");
  axis = axis_of("concat", parts[0], axis);
  Shape shape = parts[0].shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    agree("concat", parts[0], part);
    Shape rest = part.shape();
    if (rest.rank() == shape.rank()) rest[axis] = 0;
    Shape wanted = shape;
    wanted[axis] = 0;
    if (!(rest == wanted)) {
      fail("concat: ", part.shape(), " does not join ", parts[0].shape(), " along axis ", axis,
           ": other extents differ.");
    }
    shape[axis] += part.extent(axis);
  }
  const Tensor y = empty_like(parts[0], shape);
  std::vector<int64_t> extents;
  int64_t at = 0;
  for (const Tensor& part : parts) {
    launch<kernel::Copy>(y.device(), part, view::slice(y, axis, at, at + part.extent(axis)));
    extents.push_back(part.extent(axis));
    at += part.extent(axis);
  }
  return record("concat", y, parts, [extents, axis](const Tensor& dy) {
    Gradients gradients;
    int64_t begin = 0;
    for (int64_t extent : extents) {
      gradients.push_back(view::slice(dy, axis, begin, begin + extent));
      begin += extent;
    }
    return gradients;
  });
}

Tensor cast(const Tensor& x, DType dtype) {
  check_not_empty("cast", x);
  if (x.dtype() == dtype) return x;
  const Tensor y(x.shape(), dtype, x.device());
  launch<kernel::Copy>(x.device(), x, y);
  if (!is_float(dtype) || !is_float(x.dtype())) return y;
  return record("cast", y, {&x},
                [from = x.dtype()](const Tensor& dy) -> Gradients { return {cast(dy, from)}; });
}

}  // namespace heed
