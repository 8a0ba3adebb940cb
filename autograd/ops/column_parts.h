// Parts of the columns of one tensor, whose gradients meet in one tensor as well.
#pragma once

#include "heed/autograd/ops.h"

namespace heed {

/// The parts of x [..., W] with these numbers of columns, which add up to W: views. Their gradients are
/// written into one tensor [..., W]; those that an op has put there already are not copied.
std::vector<Tensor> column_parts(const char* op, const Tensor& x, std::span<const int64_t> columns);

/// New tensors for the gradients of heads [B, H, T, d_i], each with the strides of its heads, as
/// gradient_like() makes them. Where the heads are parts of the columns of one tensor, so are their gradients.
std::vector<Tensor> gradients_like(std::span<const Tensor> heads);

/// The dense parts as one tensor, along axis 0, where each begins where the one before it ends; else empty.
Tensor adjacent(std::span<const Tensor> parts);

}  // namespace heed
