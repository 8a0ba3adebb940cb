// Rows of every head by an index of its own, and their gradient.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// out[b, h, i] = x[b, h, ids[b, h, i]]; an id of -1 gives a row of zeros. x [B, H, T, d] with last stride 1,
/// ids i32 [B, H, n] of any strides (0 where heads share them), out [B, H, n, d] contiguous. Fails on any
/// other id outside x.
struct GatherRows {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& ids, const Tensor& out);
  static void cuda(const Tensor& x, const Tensor& ids, const Tensor& out);
};

/// y[b, h, ids[b, h, i]] += rows[b, h, i], in the order of i: deterministic, without atomics. An id of -1
/// adds nothing. rows [B, H, n, d] with last stride 1, y [B, H, T, d] contiguous.
struct ScatterAddRows {
  template <Isa>
  static void cpu(const Tensor& ids, const Tensor& rows, const Tensor& y);
  static void cuda(const Tensor& ids, const Tensor& rows, const Tensor& y);
};

}  // namespace heed::kernel
