// Columns of one tensor as several, and their gradients as one.
#include "heed/autograd/ops/column_parts.h"

#include <memory>

#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// True where both are the same elements in the same order.
bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

/// The gradient [..., W] of a tensor in parts, written part by part.
struct JointGradient {
  Shape shape;
  std::vector<int64_t> first_columns;  ///< of each part, and W
  Tensor whole = {};                   ///< empty until the first part comes
  std::vector<bool> written = {};

  Tensor place(size_t part) const {
    return view::slice(whole, shape.rank() - 1, first_columns[part], first_columns[part + 1]);
  }
  /// Takes the gradient of a part. Returns all of them with the first one, which the tape hands on when every
  /// part has come, and nothing with later ones.
  Gradients add(size_t part, const Tensor& dy) {
    const bool is_first = !whole;
    if (is_first) {
      whole = dy.storage()->bytes() == shape.size() * bytes_of(dy.dtype())
                  ? dy.seen_as(shape, Strides::contiguous(shape), 0)
                  : empty_like(dy, shape);
      if (!is_same_view(place(part), dy)) whole = empty_like(dy, shape);
    }
    if (!is_same_view(place(part), dy)) launch<kernel::Copy>(dy.device(), dy, place(part));
    written[part] = true;
    return {is_first ? whole : Tensor()};
  }
  /// Zeros for the parts without a gradient.
  void fill() const {
    for (size_t part = 0; part < written.size(); ++part) {
      if (!written[part]) launch<kernel::Copy>(whole.device(), Tensor::zeros(place(part).shape(), whole.dtype(), whole.device()), place(part));
    }
  }
};

}  // namespace

std::vector<Tensor> column_parts(const char* op, const Tensor& x, std::span<const int64_t> columns) {
  const auto joint = std::make_shared<JointGradient>(JointGradient{.shape = x.shape(), .first_columns = {0}});
  for (const int64_t count : columns) joint->first_columns.push_back(joint->first_columns.back() + count);
  joint->written.assign(columns.size(), false);
  // Later parts write into the gradient that x has from the first, so x reads it when all are there.
  const Tensor whole = record(op, x.detach(), {&x}, [joint](const Tensor& dy) -> Gradients {
    joint->fill();
    return {dy};
  });
  std::vector<Tensor> parts;
  for (size_t part = 0; part < columns.size(); ++part) {
    const Tensor y = view::slice(whole.detach(), whole.rank() - 1, joint->first_columns[part],
                                 joint->first_columns[part + 1]);
    parts.push_back(
        record(op, y, {&whole}, [joint, part](const Tensor& dy) { return joint->add(part, dy); }));
  }
  return parts;
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
