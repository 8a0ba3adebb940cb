// Stable argsort of rows, and top-k of rows.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// order[..., :] = the indices of keys[..., :] from the least key to the greatest; equal keys keep their
/// order, NaN comes last. keys i32, f32 or f64, order i32; both have the same shape and are contiguous.
struct Argsort {
  template <Isa>
  static void cpu(const Tensor& keys, const Tensor& order);
  static void cuda(const Tensor& keys, const Tensor& order);
};

/// which[..., :k] = the indices of the k largest of x[..., :n] in ascending order, the first ones of equals.
/// Numbers of -inf or NaN are never chosen: where fewer than k are left, the row ends with -1. x f32 or f64,
/// which i32, both contiguous.
struct TopK {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& which);
  static void cuda(const Tensor& x, const Tensor& which);
};

}  // namespace heed::kernel
