// Tensors as plain doubles, for references in loops.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heed/core/shape.h"

namespace heed::plain {

/// Row-major doubles and their shape.
struct Plain {
  Shape shape;
  std::vector<double> values;

  Plain() = default;
  explicit Plain(Shape extents, double value = 0)
      : shape(extents), values(static_cast<size_t>(extents.size()), value) {}
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  int64_t extent(int64_t axis) const { return shape[axis]; }
};

using Plains = std::vector<Plain>;

/// The index along each axis of element i.
inline std::vector<int64_t> indices(const Shape& shape, int64_t i) {
  std::vector<int64_t> out(static_cast<size_t>(shape.rank()));
  for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
    out[static_cast<size_t>(axis)] = i % shape[axis];
    i /= shape[axis];
  }
  return out;
}

/// The offset of the element at these indices, with broadcasting: missing leading axes and extents of 1
/// repeat.
inline int64_t place(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t out = 0;
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    const int64_t index = at[at.size() - static_cast<size_t>(shape.rank() - axis)];
    out = out * shape[axis] + (shape[axis] == 1 ? 0 : index);
  }
  return out;
}

inline Plain map(const Plain& x, const std::function<double(double)>& f) {
  Plain y(x.shape);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = f(x[i]);
  return y;
}

inline Plain zip(const Plain& a, const Plain& b, const std::function<double(double, double)>& f) {
  Plain y(broadcast("plain", a.shape, b.shape));
  for (int64_t i = 0; i < y.size(); ++i) {
    const auto at = indices(y.shape, i);
    y[i] = f(a[place(a.shape, at)], b[place(b.shape, at)]);
  }
  return y;
}

/// x summed over broadcast axes to `shape`.
inline Plain sum_to(const Plain& x, const Shape& shape) {
  Plain y(shape);
  for (int64_t i = 0; i < x.size(); ++i) y[place(shape, indices(x.shape, i))] += x[i];
  return y;
}

/// The shape of x with this axis reduced to 1.
inline Shape reduced(const Plain& x, int64_t axis) {
  Shape shape = x.shape;
  shape[axis] = 1;
  return shape;
}

inline int64_t width(const Plain& x) { return x.shape[-1]; }
inline int64_t rows(const Plain& x) { return width(x) == 0 ? 0 : x.size() / width(x); }

}  // namespace heed::plain
