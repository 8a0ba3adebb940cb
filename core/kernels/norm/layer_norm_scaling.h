// How LayerNorm scales a row and what that adds to its gradient, for the CPU and the device.
#pragma once

#include <cmath>

#include "heed/core/host_device.h"
#include "heed/core/kernels/norm/layer_norm.h"

namespace heed::kernel {

/// The scale of rows of `width` numbers.
struct LayerNormScaling {
  double epsilon;
  NormScale scale;
  int64_t width;

  /// `mean` of a row, or 0 where none is subtracted: the mean of x in y, and that of g in dx.
  template <class T>
  HEED_BOTH T centre(T mean) const {
    return scale == NormScale::rms ? T(0) : mean;
  }

  /// rstd = 1 / sqrt(squares / width + epsilon), or with NormScale::deviation 1 / (sqrt(squares / (width -
  /// 1)) + epsilon), where squares = sum (x - mean)^2.
  template <class T>
  HEED_BOTH T rstd(T squares) const {
    const auto total = static_cast<double>(squares);
    if (scale != NormScale::deviation)
      return static_cast<T>(1 / std::sqrt(total / static_cast<double>(width) + epsilon));
    const double deviation = width > 1 ? std::sqrt(total / static_cast<double>(width - 1)) : 0;
    return static_cast<T>(1 / (deviation + epsilon));
  }

  /// The factor k in dx = rstd (g - mean(g) - h k), for g = gain dy and h = (x - mean) rstd: mean(g h), or
  /// with NormScale::deviation sum(g h) / ((width - 1) deviation rstd).
  template <class T>
  HEED_BOTH T gradient_factor(T sum_gh, T rstd) const {
    const auto total = static_cast<double>(sum_gh);
    if (scale != NormScale::deviation) return static_cast<T>(total / static_cast<double>(width));
    const double deviation_rstd = 1 - epsilon * static_cast<double>(rstd);
    return width > 1 && deviation_rstd > 0
               ? static_cast<T>(total / (static_cast<double>(width - 1) * deviation_rstd))
               : T(0);
  }
};

}  // namespace heed::kernel
