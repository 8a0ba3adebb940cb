// RotaryAngles: the angles of rope, and heads rotated by them.
#pragma once

#include "heed/autograd/ops.h"
#include "heed/core/parallel/recent_values.h"
#include "heed/nn/packing.h"

namespace heed {

/// A table of rope's angles: pair i of d / 2 rotates by base^(-2 i / d) per position.
class RotaryAngles {
 public:
  /// Cosines, then sines, [end - first, d], of positions first <= t < end in the dtype and on the device of
  /// x. d is even; d and base must be the same at each call.
  Tensor at(const Tensor& x, int64_t first, int64_t end, int64_t d, double base) const;

  /// x [B, H, T, d] rotated by position: row 0 has position `first`. With `packing`, x is [1, H, N, d] of
  /// packed sequences, and each row has its position there.
  Tensor rotated(const Tensor& x, int64_t first, const Packing* packing, double base,
                 kernel::RotaryPairs pairs) const;

 private:
  RecentValues<std::pair<DType, Device>, Tensor> tables_;  // cosines and sines by position
};

}  // namespace heed
