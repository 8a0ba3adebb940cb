// How the fused ops take and make heads.
#pragma once

#include "heed/autograd/ops.h"

namespace heed {

/// Heads stay strided views of [B, T, H, d]; only a broken last axis is copied. An empty tensor stays empty.
inline Tensor rows(const Tensor& x) {
  if (!x) return x;
  return x.strides()[-1] == 1 || x.extent(-1) == 1 ? x.detach() : contiguous(x.detach());
}

/// [B, H, length, width] as a view of fresh [B, length, H, width]: joining the heads afterwards costs
/// nothing.
inline Tensor heads_like(const Tensor& x, int64_t length, int64_t width) {
  return view::transpose(empty_like(x, Shape{x.extent(0), length, x.extent(1), width}), 1, 2);
}

/// Room for the gradient of heads x, lying as they do, so that it reaches them without a copy.
inline Tensor gradient_like(const Tensor& x) {
  return x.contiguous() ? empty_like(x) : heads_like(x, x.extent(2), x.extent(3));
}

}  // namespace heed
