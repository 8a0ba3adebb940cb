// Stable argsort of rows, and top-k.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// order = for each row of the last axis, the places of its keys from the least to the greatest; equal keys
/// keep their order, NaN comes last. keys i32, f32 or f64, order i32, one shape, contiguous.
struct Argsort {
  template <Isa>
  static void cpu(const Tensor& keys, const Tensor& order);
  static void cuda(const Tensor& keys, const Tensor& order);
};

/// which = for each row of the last axis, the places of its largest values in rising order; among equal
/// values the first ones. A value of -inf or NaN is never chosen: what is left over holds -1, at the end. x
/// [..., n] f32 or f64, which i32 [..., k], contiguous.
struct Largest {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& which);
  static void cuda(const Tensor& x, const Tensor& which);
};

}  // namespace heed::kernel
