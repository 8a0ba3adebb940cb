// Clipping of the gradient, by its norm over all parameters and of each element, for the CPU and the device.
#pragma once

#include <cmath>

#include "heed/core/host_device.h"

namespace heed::kernel {

/// The norm of the whole gradient, by the sum of its squares.
struct GradientNorm {
  double square_sum;  ///< over all parameters

  HEED_BOTH bool is_finite() const { return square_sum - square_sum == 0; }
  /// Factor of the gradient that reduces its norm to at most `max_norm`; 1 where max_norm is 0.
  HEED_BOTH double clip_scale(double max_norm) const {
    const double norm = std::sqrt(square_sum);
    return max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
  }
};

/// Cuts elements of the gradient to +-bound; NaN stays.
template <class T>
struct CutElement {
  T bound;

  /// `clip_value`: the bound, or 0 for none.
  HEED_BOTH static CutElement to(double clip_value) {
    return {clip_value > 0 ? static_cast<T>(clip_value) : static_cast<T>(HUGE_VAL)};
  }
  HEED_BOTH T operator()(T x) const { return x > bound ? bound : x < -bound ? -bound : x; }
};

}  // namespace heed::kernel
