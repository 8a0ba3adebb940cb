// Creates tensors, copies them between devices, prints them, and makes views.
#include "heed/core/tensor.h"

#include <cstring>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// Copies in the order of the device's stream; waits for copies to the host.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, int64_t bytes) {
  if (to_device == Device::cpu && from_device == Device::cpu) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  if constexpr (built_with_cuda) {
    if (to_device == Device::cuda)
      cuda::copy_in(to, from, bytes);
    else
      cuda::copy_out(to, from, bytes);
  }
}

}  // namespace

Tensor::Tensor(Shape shape, DType dtype, Device device)
    : storage_(std::make_shared<Storage>(shape.size() * bytes_of(dtype), device)),
      shape_(shape),
      strides_(Strides::contiguous(shape)),
      size_(shape.size()),
      dtype_(dtype) {}

Tensor Tensor::copied(const void* values, size_t count, const Shape& shape, DType dtype, Device device) {
  Tensor out(shape, dtype, device);
  if (static_cast<int64_t>(count) != out.size()) {
    fail("tensor: ", count, " values do not fill the shape ", to_string(shape), ", which has ", out.size(),
         ".");
  }
  if (count > 0) copy_bytes(out.raw(), device, values, Device::cpu, out.bytes());
  return out;
}

Tensor Tensor::from(std::initializer_list<float> values) {
  return from(std::span(values.begin(), values.size()), Shape{static_cast<int64_t>(values.size())});
}

Tensor Tensor::from(std::span<const float> values, const Shape& shape) { return of<float>(values, shape); }

Tensor Tensor::full(Shape shape, double value, DType dtype, Device device) {
  Tensor out(shape, dtype, device);
  launch<kernel::Fill>(device, out, value);
  return out;
}

Tensor Tensor::zeros(Shape shape, DType dtype, Device device) { return full(shape, 0, dtype, device); }

bool Tensor::contiguous() const {
  if (size_ == 0) return true;
  int64_t expected = 1;
  for (int64_t axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] == 1) continue;
    if (strides_[axis] != expected) return false;
    expected *= shape_[axis];
  }
  return true;
}

double Tensor::item() const {
  if (size_ != 1) fail("item: a tensor of shape ", to_string(shape_), " has ", size_, " elements, not one.");
  return to_doubles().front();
}

namespace {

/// x without history, contiguous and of this dtype: x itself or a copy on its device.
Tensor dense_as(DType dtype, const Tensor& x) {
  if (x.dtype() == dtype && x.contiguous()) return x.detach();
  const Tensor out(x.shape(), dtype, x.device());
  launch<kernel::Copy>(x.device(), x.detach(), out);
  return out;
}

/// The elements of x on the host, in row-major order, converted to T.
template <class T>
std::vector<T> values_of(const Tensor& x) {
  std::vector<T> out(static_cast<size_t>(x.size()));
  if (out.empty()) return out;
  const Tensor dense = dense_as(dtype_of<T>, x);
  copy_bytes(out.data(), Device::cpu, dense.raw(), x.device(), dense.bytes());
  return out;
}

}  // namespace

std::vector<double> Tensor::to_doubles() const { return values_of<double>(*this); }
std::vector<float> Tensor::to_host() const { return values_of<float>(*this); }

Tensor Tensor::to(Device device) const {
  if (!storage_ || device == this->device()) return *this;
  const Tensor dense = dense_as(dtype_, *this);
  Tensor out(shape_, dtype_, device);
  if (size_ > 0) copy_bytes(out.raw(), device, dense.raw(), dense.device(), out.bytes());
  return out;
}

Tensor Tensor::detach() const {
  Tensor out = *this;
  out.node_.reset();
  return out;
}

Tensor Tensor::seen_as(const Shape& shape, const Strides& strides, int64_t offset) const {
  Tensor out = detach();
  out.shape_ = shape;
  out.strides_ = strides;
  out.offset_ = offset;
  out.size_ = shape.size();
  return out;
}

void Tensor::wrong_dtype(DType wanted) const {
  fail("tensor: its elements are ", to_string(dtype_), ", not ", to_string(wanted), ". Convert with cast().");
}

Tensor empty_like(const Tensor& x) { return empty_like(x, x.shape()); }

Tensor empty_like(const Tensor& x, const Shape& shape) { return Tensor(shape, x.dtype(), x.device()); }

namespace {

/// Appends the elements from `offset` on that the axes from `axis` on index, in brackets: of an axis with
/// more than 8 elements the first 4 and the last 4.
void print(std::string& out, const std::vector<double>& values, const Shape& shape, int64_t axis,
           int64_t offset) {
  if (axis == shape.rank()) {
    out += detail::number(static_cast<float>(values[static_cast<size_t>(offset)]));
    return;
  }
  int64_t step = 1;
  for (int64_t inner = axis + 1; inner < shape.rank(); ++inner) step *= shape[inner];
  out += "[";
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) out += ", ";
    if (shape[axis] > 8 && i == 4) {
      out += "...";
      i = shape[axis] - 4;
      out += ", ";
    }
    print(out, values, shape, axis + 1, offset + i * step);
  }
  out += "]";
}

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x) return "empty tensor";
  std::string out;
  print(out, x.to_doubles(), x.shape(), 0, 0);
  return text(out, " ", x.dtype(), " ", x.shape(), x.device() == Device::cpu ? "" : " on cuda");
}

namespace view {

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return x.seen_as(shape, strides, x.offset());
}

Tensor permute(const Tensor& x, std::span<const int64_t> axes) {
  if (static_cast<int64_t>(axes.size()) != x.rank())
    fail("permute: ", axes.size(), " axes for ", x.shape(), ". Name each axis once.");
  Shape shape;
  Strides strides;
  uint64_t seen = 0;
  for (int64_t axis : axes) {
    const int64_t source = x.shape().checked(axis);
    if ((seen >> source) & 1U)
      fail("permute: axis ", axis, " of ", x.shape(), " is named twice. Name each axis once.");
    seen |= uint64_t{1} << source;
    shape.push_back(x.shape()[source]);
    strides.push_back(x.strides()[source]);
  }
  return x.seen_as(shape, strides, x.offset());
}

Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  axis = x.shape().checked(axis);
  if (begin < 0 || end < begin || end > x.extent(axis)) {
    fail("slice: [", begin, ", ", end, ") of axis ", axis, " of ", x.shape(), ". Bounds are 0 to ",
         x.extent(axis), ".");
  }
  Shape shape = x.shape();
  shape[axis] = end - begin;
  return x.seen_as(shape, x.strides(), x.offset() + begin * x.strides()[axis]);
}

Tensor expand(const Tensor& x, const Shape& shape) {
  if (!(broadcast("expand", x.shape(), shape) == shape)) {
    fail("expand: ", x.shape(), " does not expand to ", shape, ": only extents of 1 can grow.");
  }
  Strides strides;
  for (int64_t axis = -shape.rank(); axis < 0; ++axis) {
    const bool has_own_stride = -axis <= x.rank() && (x.extent(axis) != 1 || shape[axis] == 1);
    strides.push_back(has_own_stride ? x.strides()[axis] : 0);
  }
  return x.seen_as(shape, strides, x.offset());
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  if (!x.contiguous()) fail("reshape: ", x.shape(), " has gaps; make it contiguous first.");
  const Shape result = resolved(shape, x.size());
  return x.seen_as(result, Strides::contiguous(result), x.offset());
}

}  // namespace view

Shape resolved(const Shape& shape, int64_t size) {
  Shape out = shape;
  int64_t known_size = 1, unknown_axis = -1;
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == -1 && unknown_axis < 0)
      unknown_axis = axis;
    else
      known_size *= shape[axis];
  }
  if (unknown_axis >= 0) out[unknown_axis] = known_size > 0 ? size / known_size : 0;
  if (out.size() != size) fail("reshape: ", size, " elements do not fill ", shape, ".");
  return out;
}

}  // namespace heed
