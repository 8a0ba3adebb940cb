// Stable argsort of rows, and top-k.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// order = for each row of the last axis, the indices of its keys from the least to the greatest; equal keys
/// keep their order, NaN comes last. keys i32, f32 or f64, order i32, one shape, contiguous.
struct Argsort {
  template <Isa>
  static void cpu(const Tensor& keys, const Tensor& order);
  static void cuda(const Tensor& keys, const Tensor& order);
};

/// which = for each row of the last axis, the indices of its k largest values in ascending order, the first
/// ones of equals. A value of -inf or NaN is never chosen: the row then ends with -1. x [..., n] f32 or f64,
/// which i32 [..., k], contiguous.
struct TopK {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& which);
  static void cuda(const Tensor& x, const Tensor& which);
};

}  // namespace heed::kernel
