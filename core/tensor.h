// Tensor: a handle on numbers.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/core/device.h"
#include "heed/core/dtype.h"
#include "heed/core/memory/storage.h"
#include "heed/core/shape.h"

namespace heed {

struct Node;  // autograd's; core never looks inside

/// A handle on numbers. Copies share them; ops change none of their inputs. The history (autograd's node)
/// belongs to the handle: a copy taken before an op is recorded has none, so a gradient closure may keep the
/// result of its own op without a cycle.
class Tensor {
 public:
  Tensor() = default;  ///< empty: `if (!t)`
  /// Uninitialised numbers.
  explicit Tensor(Shape shape, DType dtype = DType::f32, Device device = default_device);

  /// f32 values on the default device, for tests and examples; rank 1 unless a shape of the same size is
  /// given.
  static Tensor from(std::initializer_list<float> values);
  /// The values in row-major order; their number must be shape.size().
  static Tensor from(std::span<const float> values, const Shape& shape);
  /// from() of numbers that are written out: Tensor::from({1, 2, 3, 4}, Shape{2, 2}).
  static Tensor from(std::initializer_list<float> values, const Shape& shape) {
    return from(std::span(values.begin(), values.size()), shape);
  }
  /// The values of any element type, copied; `T` decides the dtype.
  template <class T>
  static Tensor of(std::span<const T> values, const Shape& shape, Device device = default_device) {
    return copied(values.data(), values.size(), shape, dtype_of<T>, device);
  }
  /// Every element is `value`, converted to dtype.
  static Tensor full(Shape shape, double value, DType dtype = DType::f32, Device device = default_device);
  /// Every element is 0.
  static Tensor zeros(Shape shape, DType dtype = DType::f32, Device device = default_device);

  explicit operator bool() const { return storage_ != nullptr; }  ///< false for an empty tensor
  const Shape& shape() const { return shape_; }                   ///< extents; a single number has rank 0
  /// Elements from one index to the next, for each axis; 0 where an axis is repeated.
  const Strides& strides() const { return strides_; }
  /// One extent; negative axes count from the end.
  int64_t extent(int64_t axis) const { return shape_[axis]; }
  int64_t rank() const { return shape_.rank(); }                                 ///< number of axes, 0 to 6
  DType dtype() const { return dtype_; }                                         ///< type of the elements
  Device device() const { return storage_ ? storage_->device() : Device::cpu; }  ///< where the numbers lie
  int64_t size() const { return size_; }                                         ///< number of elements
  /// Bytes of size() elements, however many the storage of a view holds.
  int64_t bytes() const { return size_ * bytes_of(dtype_); }
  bool contiguous() const;  ///< row major without gaps

  /// Pointer to the first element; checks the dtype. Device memory on CUDA. The tape sees no writes to it.
  template <class T>
  T* data() const {
    if (dtype_ != dtype_of<T>) wrong_dtype(dtype_of<T>);
    return static_cast<T*>(raw());
  }
  /// Pointer to the first element, whatever the dtype; a device pointer on CUDA.
  void* raw() const { return static_cast<std::byte*>(storage_->data()) + offset_ * bytes_of(dtype_); }
  /// The memory, shared with copies and views.
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  int64_t offset() const { return offset_; }  ///< in elements, from the start of the storage

  /// The only element, as a double. Waits for the device. Fails when there is more than one.
  double item() const;
  std::vector<float> to_host() const;      ///< all elements in row-major order, converted to float
  std::vector<double> to_doubles() const;  ///< all elements in row-major order, converted to double
  Tensor detach() const;                   ///< shares the numbers, without history
  /// A dense copy on a device, without history; the tensor itself where it is on that device.
  Tensor to(Device device) const;

  const std::shared_ptr<Node>& node() const { return node_; }  ///< history for autograd; null without one
  /// Used by record(): gives this handle its history.
  void set_node(std::shared_ptr<Node> node) { node_ = std::move(node); }

  /// The part [...] of [n, ...] at an index of the first axis; negative ones count from the end. It is
  /// recorded: autograd defines it, as select(x, 0, index).
  Tensor operator[](int64_t index) const;

  /// A view of the storage with another shape, strides and offset, without history. For views and arenas.
  Tensor seen_as(const Shape& shape, const Strides& strides, int64_t offset) const;

 private:
  static Tensor copied(const void* values, size_t count, const Shape& shape, DType dtype, Device device);
  [[noreturn]] void wrong_dtype(DType wanted) const;

  std::shared_ptr<Storage> storage_;
  std::shared_ptr<Node> node_;
  Shape shape_;
  Strides strides_;
  int64_t offset_ = 0;
  int64_t size_ = 0;
  DType dtype_ = DType::f32;
};

/// An uninitialised tensor of the same shape, dtype and device.
Tensor empty_like(const Tensor& x);
Tensor empty_like(const Tensor& x, const Shape& shape);  ///< keeps dtype and device of x

/// Numbers, shape and dtype as text, long axes shortened.
std::string to_string(const Tensor& x);

/// Views: tensors that share the numbers of x, without history. The ops of the same names in autograd/ops.h
/// keep the history.
namespace view {
Tensor transpose(const Tensor& x, int64_t a, int64_t b);  ///< swaps axes a and b
/// Axis i of the result is axis axes[i] of x.
Tensor permute(const Tensor& x, std::span<const int64_t> axes);
/// Indices begin <= i < end of the axis; fails outside of it.
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end);
/// Repeats axes of extent 1 (stride 0) and adds leading axes. Fails where the shapes do not broadcast.
Tensor expand(const Tensor& x, const Shape& shape);
/// A contiguous tensor in another shape of the same size; one extent may be -1. Fails when x has gaps.
Tensor reshape(const Tensor& x, const Shape& shape);
}  // namespace view

/// `shape` with one -1 replaced so that its size is `size`. Fails when that cannot be.
Shape resolved(const Shape& shape, int64_t size);

}  // namespace heed
