// Depthwise convolution along a sequence: each channel has its own few taps.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Where tap j of position t reads: at t + first + step j. `step` is 1, or -1 in the gradient of the input.
struct TapPlaces {
  int64_t first = 0;  ///< distance of tap 0 from the position
  int64_t step = 1;   ///< distance of the next tap
};

/// y[b, t, c] = sum_j taps[j, c] x[b, t + first + step j, c], where positions beyond the ends are zeros.
/// x and y [B, T, C], taps [k, C], all dense. Its gradient of x is the convolution of dy with the places
/// {-first, -step}.
struct DepthwiseConvolution {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& taps, TapPlaces places, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& taps, TapPlaces places, const Tensor& y);
};

/// The gradient of the taps: dtaps[j, c] = sum over b and t of dy[b, t, c] x[b, t + first + step j, c].
struct DepthwiseConvolutionTaps {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& dy, TapPlaces places, const Tensor& dtaps);
  static void cuda(const Tensor& x, const Tensor& dy, TapPlaces places, const Tensor& dtaps);
};

}  // namespace heed::kernel
