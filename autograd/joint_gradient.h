// One gradient of several parameters that lie one behind the other in the optimizer's buffer.
#pragma once

#include "heed/core/tensor.h"

namespace heed {

/// gradient_target() of `count` inputs from `first` on as one tensor of this shape, which they make up along
/// axis 0: the optimizer's buffer where theirs lie one behind the other and none got a gradient in this step,
/// else new memory. The vjp writes all of it and returns the parts.
Tensor joint_gradient_target(size_t first, size_t count, const Shape& shape, DType dtype, Device device);

}  // namespace heed
