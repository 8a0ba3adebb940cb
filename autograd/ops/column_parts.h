// Parts of the columns of one tensor, whose gradients meet in one tensor as well.
#pragma once

#include "heed/autograd/ops.h"

namespace heed {

/// The gradients of the parts of a tensor [..., W], each [..., w_i]: see column_parts().
class PartGradients {
 public:
  /// `columns`: the widths w_i of the parts.
  PartGradients(const Shape& shape, std::span<const int64_t> columns);
  /// The gradient of the whole tensor as rows [N, W], for its vjp. Where the parts have been computed as the
  /// columns of one tensor it is that one; else they are copied into a new one of this dtype, with zeros for
  /// parts without a gradient, and each part is given free. To be called once.
  Tensor joined(DType dtype);
  /// The columns of part i of a tensor [..., W]: a view.
  Tensor part(const Tensor& whole, size_t i) const;
  size_t count() const { return gradients_.size(); }  ///< number of parts
  /// Takes the gradient of part i. Returns, with the first one that comes, a tensor of the shape of the whole
  /// for the tape to hand on, whose numbers nobody reads.
  Tensor add(size_t i, const Tensor& dy);

 private:
  Shape shape_;
  std::vector<int64_t> first_columns_ = {0};  // the column at which each part begins, and W as the last
  std::vector<Tensor> gradients_;             // empty where a part has none
  bool has_any_ = false;
};

/// The parts of y: views. The vjp of y gets its gradient from `gradients`, not from its argument.
std::vector<Tensor> column_parts(const char* op, const Tensor& y,
                                 const std::shared_ptr<PartGradients>& gradients);

/// New tensors for the gradients of heads [B, H, T, d_i], each with the strides of its heads, as
/// gradient_like() makes them; empty heads have none. Where heads in a row are the columns of one tensor, so
/// are their gradients.
std::vector<Tensor> gradients_like(std::span<const Tensor> heads);

/// The dense parts as one tensor, along axis 0, where each begins where the one before it ends; else empty.
Tensor adjacent(std::span<const Tensor> parts);

}  // namespace heed
