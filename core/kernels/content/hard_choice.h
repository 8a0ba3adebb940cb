// Hard attention: selects one key per row, the one of largest weight or one drawn at random.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// picked [..., K] u8 = 1 at one element of each row of weights [..., K] (f32 or f64, none negative), 0
/// elsewhere; rows of zeros pick nothing. Without draw.tick the first element of largest weight is picked;
/// with it element j of row r with probability weight_j / sum, by the first word of Philox block r. Both are
/// contiguous.
struct HardChoice {
  template <Isa>
  static void cpu(const Tensor& weights, const Draw& draw, const Tensor& picked);
  static void cuda(const Tensor& weights, const Draw& draw, const Tensor& picked);
};

}  // namespace heed::kernel
