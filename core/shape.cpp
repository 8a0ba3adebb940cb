// Extents, sizes, contiguous strides and broadcasting of shapes.
#include "heed/core/shape.h"

#include <algorithm>

namespace heed {

void Extents::insert(int64_t axis, int64_t value) {
  push_back(0);
  std::copy_backward(begin() + axis, end() - 1, end());
  begin()[axis] = value;
}

void Extents::erase(int64_t axis) {
  axis = checked(axis);
  std::copy(begin() + axis + 1, end(), begin() + axis);
  --rank_;
}

bool Extents::operator==(const Extents& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

void Extents::out_of_range(int64_t axis) const {
  fail("shape: axis ", axis, " of ", to_string(*this), ". Axes are ", -rank_, " to ", rank_ - 1, ".");
}

int64_t Shape::size() const {
  constexpr int64_t limit = int64_t{1} << 56;  // so that bytes, and offsets in them, fit 64 bits
  int64_t size = 1;
  bool fits = true;
  for (int64_t extent : *this) {
    if (extent < 0) fail("shape: ", to_string(*this), " is no shape: ", extent, " is below 0.");
    fits = fits && !__builtin_mul_overflow(size, extent, &size);
  }
  if (!fits || size > limit) {
    fail(Fault::memory, "shape: ", to_string(*this),
         " is more than any memory holds. Lower what is so large.");
  }
  return size;
}

Strides Strides::contiguous(const Shape& shape) {
  Strides strides;
  for (int64_t axis = 0; axis < shape.rank(); ++axis) strides.push_back(1);
  for (int64_t axis = shape.rank() - 2; axis >= 0; --axis) {
    strides[axis] = strides[axis + 1] * std::max<int64_t>(shape[axis + 1], 1);
  }
  return strides;
}

std::string to_string(const Extents& extents) {
  std::string out = "[";
  for (int64_t axis = 0; axis < extents.rank(); ++axis) {
    if (axis > 0) out += ", ";
    out += std::to_string(extents[axis]);
  }
  return out + "]";
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  Shape out;
  const int64_t rank = std::max(a.rank(), b.rank());
  for (int64_t axis = -rank; axis < 0; ++axis) {
    const int64_t left = -axis <= a.rank() ? a[axis] : 1;
    const int64_t right = -axis <= b.rank() ? b[axis] : 1;
    if (left != right && left != 1 && right != 1) {
      fail(op, ": ", to_string(a), " and ", to_string(b), " do not broadcast: axis ", axis, " has ", left,
           " and ", right, ". Extents must be equal, or one of them 1.");
    }
    out.push_back(left == 1 ? right : left);
  }
  return out;
}

}  // namespace heed
