// Strided views of heads that the fused ops read and write.
#pragma once

#include "heed/autograd/ops.h"

namespace heed {

/// x detached from the graph, with a dense last axis: heads may stay strided views of [B, T, H, d]. An empty
/// tensor stays empty.
inline Tensor rows(const Tensor& x) {
  if (!x) return x;
  return x.strides()[-1] == 1 || x.extent(-1) == 1 ? x.detach() : contiguous(x.detach());
}

/// A new tensor [B, H, length, width] that is a view of [B, length, H, width], so that joining the heads
/// afterwards copies nothing.
inline Tensor heads_like(const Tensor& x, int64_t length, int64_t width) {
  return view::transpose(empty_like(x, Shape{x.extent(0), length, x.extent(1), width}), 1, 2);
}

/// A new tensor [B, H, T, d] of the extents of x; empty where x is empty.
inline Tensor heads_like(const Tensor& x) { return x ? heads_like(x, x.extent(2), x.extent(3)) : x; }

/// A new tensor for the gradient of heads x, with the strides of x, so that it reaches them without a copy.
inline Tensor gradient_like(const Tensor& x) { return x.contiguous() ? empty_like(x) : heads_like(x); }

}  // namespace heed
