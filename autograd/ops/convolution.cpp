// Depthwise convolution along a sequence.
#include "heed/core/kernels/elementwise/depthwise_convolution.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {

Tensor depthwise_convolution(const Tensor& x, const Tensor& weight, bool causal) {
  if (x.rank() != 3 || weight.rank() != 2 || weight.extent(0) != x.extent(2) || weight.extent(1) < 1) {
    fail("depthwise_convolution: a weight ", weight.shape(), " for x ", x.shape(),
         ". They must be [C, k] and [B, T, C], with at least one tap k for each channel.");
  }
  agree("depthwise_convolution", x, weight);
  const int64_t count = weight.extent(1);
  const kernel::TapPlaces places{.first = causal ? 1 - count : -((count - 1) / 2)};
  const Tensor dense = contiguous(x.detach()), taps = contiguous(view::transpose(weight.detach(), 0, 1));
  const auto convolved = [](const Tensor& from, const Tensor& by, kernel::TapPlaces at) {
    const Tensor y = empty_like(from);
    launch<kernel::DepthwiseConvolution>(from.device(), from, by, at, y);
    return y;
  };
  const auto vjp = [dense, taps, places, convolved](const Tensor& given_dy) -> Gradients {
    const Tensor dy = contiguous(given_dy), dtaps = empty_like(taps);
    launch<kernel::DepthwiseConvolutionTaps>(dy.device(), dense, dy, places, dtaps);
    return {convolved(dy, taps, {.first = -places.first, .step = -places.step}),
            contiguous(view::transpose(dtaps, 0, 1))};
  };
  return record("depthwise_convolution", convolved(dense, taps, places), {&x, &weight}, vjp);
}

}  // namespace heed
