// Numbers changed in place, outside the tape: initial weights, running means, weights copied between models.
#pragma once

#include "heed/core/tensor.h"

namespace heed {

// Each is unknown to the tape: no gradient flows through it. Parameters (leaves) may be changed; the result
// of a recorded op may not, and a backward() over what was changed since it was read fails.

/// x = y, whose shape broadcasts to that of x; converted to the dtype of x, and moved to its device.
void copy_(const Tensor& x, const Tensor& y);
/// Every number of x becomes `value`.
void fill_(const Tensor& x, double value);
/// x += scale y, whose shape broadcasts to that of x, which is contiguous.
void add_(const Tensor& x, const Tensor& y, double scale = 1);
/// x = scale x.
void scale_(const Tensor& x, double scale);

}  // namespace heed
