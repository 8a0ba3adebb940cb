// Columns of one tensor as several, and their gradients as one.
#include "heed/autograd/ops/column_parts.h"

#include <algorithm>
#include <utility>

#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// True where both are the same elements in the same order.
bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.dtype() == b.dtype() && a.offset() == b.offset() &&
         a.shape() == b.shape() && a.strides() == b.strides();
}

/// Number of elements in the memory of x.
int64_t storage_size(const Tensor& x) { return x.storage()->bytes() / bytes_of(x.dtype()); }

/// True where heads b are the next columns, behind heads a, of one tensor [B, T, W].
bool follows(const Tensor& a, const Tensor& b) {
  return a && b && a.storage() == b.storage() && a.dtype() == b.dtype() && a.extent(0) == b.extent(0) &&
         a.extent(2) == b.extent(2) && a.strides()[0] == b.strides()[0] && a.strides()[2] == b.strides()[2] &&
         b.offset() == a.offset() + a.extent(1) * a.extent(3);
}

/// True where heads [B, H, T, d] are columns of a tensor [B, T, W].
bool are_columns(const Tensor& heads) {
  return heads && heads.size() > 0 && heads.strides()[3] == 1 && heads.strides()[1] == heads.extent(3) &&
         heads.strides()[0] == heads.extent(2) * heads.strides()[2];
}

}  // namespace

PartGradients::PartGradients(const Shape& shape, std::span<const int64_t> columns)
    : shape_(shape), gradients_(columns.size()) {
  for (const int64_t count : columns) first_columns_.push_back(first_columns_.back() + count);
}

Tensor PartGradients::part(const Tensor& whole, size_t i) const {
  return view::slice(whole, whole.rank() - 1, first_columns_[i], first_columns_[i + 1]);
}

Tensor PartGradients::add(size_t i, const Tensor& dy) {
  gradients_[i] = dy;
  if (std::exchange(has_any_, true)) return {};
  if (dy.size() == 0) return empty_like(dy, shape_);
  return view::expand(dy.seen_as(Shape{}, Strides{}, dy.offset()), shape_);
}

Tensor PartGradients::joined(DType dtype) {
  const int64_t width = first_columns_.back();
  const Shape rows{width > 0 ? shape_.size() / width : 0, width};
  const Tensor& first = gradients_.front();
  if (first && storage_size(first) == shape_.size()) {
    const Tensor whole = first.seen_as(shape_, Strides::contiguous(shape_), 0);
    bool is_whole = true;
    for (size_t i = 0; i < count() && is_whole; ++i)
      is_whole = gradients_[i] && is_same_view(part(whole, i), gradients_[i]);
    if (is_whole) return view::reshape(whole, rows);
  }
  Device device = Device::cpu;
  for (const Tensor& dy : gradients_) {
    if (dy) device = dy.device();
  }
  const Tensor whole(shape_, dtype, device);
  for (size_t i = 0; i < count(); ++i) {
    if (gradients_[i])
      launch<kernel::Copy>(device, std::exchange(gradients_[i], Tensor()), part(whole, i));
    else
      launch<kernel::Fill>(device, part(whole, i), 0.0);
  }
  return view::reshape(whole, rows);
}

std::vector<Tensor> column_parts(const char* op, const Tensor& y,
                                 const std::shared_ptr<PartGradients>& gradients) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < gradients->count(); ++i) {
    parts.push_back(record(op, gradients->part(y, i), {&y}, [gradients, i](const Tensor& dy) -> Gradients {
      return {gradients->add(i, dy)};
    }));
  }
  return parts;
}

std::vector<Tensor> gradients_like(std::span<const Tensor> heads) {
  std::vector<Tensor> out;
  while (out.size() < heads.size()) {
    const size_t first = out.size();
    size_t end = first + 1;
    while (end < heads.size() && follows(heads[end - 1], heads[end])) ++end;
    const Tensor &begin = heads[first], &last = heads[end - 1];
    const bool is_joint =
        end > first + 1 && std::all_of(heads.begin() + first, heads.begin() + end, are_columns) &&
        last.offset() + last.extent(1) * last.extent(3) == begin.offset() + begin.strides()[2];
    if (!is_joint) {
      out.push_back(begin ? gradient_like(begin) : begin);
      continue;
    }
    const Tensor whole = empty_like(begin, Shape{begin.extent(0) * begin.extent(2) * begin.strides()[2]});
    while (out.size() < end) {
      const Tensor& x = heads[out.size()];
      out.push_back(whole.seen_as(x.shape(), x.strides(), x.offset() - begin.offset()));
    }
  }
  return out;
}

Tensor adjacent(std::span<const Tensor> parts) {
  Shape shape = parts.front().shape();
  int64_t end = parts.front().offset();
  shape[0] = 0;
  for (const Tensor& part : parts) {
    if (!part.contiguous() || part.storage() != parts.front().storage() || part.offset() != end ||
        part.dtype() != parts.front().dtype())
      return {};
    end += part.size();
    shape[0] += part.extent(0);
  }
  return parts.front().seen_as(shape, Strides::contiguous(shape), parts.front().offset());
}

}  // namespace heed
