// Convolution and pooling over images, by im2col and a matrix product. Channels come last: [B, height, width,
// channels], so that permute(x, {0, 2, 3, 1}) makes one of PyTorch's [B, channels, height, width].
#pragma once

#include "heed/nn/linear.h"

namespace heed {

/// The places that a window visits on an image, the same ones along height and width.
struct Window2d {
  int64_t size = 3;      ///< rows and columns of the window
  int64_t stride = 1;    ///< distance between neighbouring windows
  int64_t padding = 0;   ///< rows and columns around the image, of zeros
  int64_t dilation = 1;  ///< distance between neighbouring elements of a window
  /// Number of windows along `extent` pixels: floor((extent + 2 padding - dilation (size - 1) - 1) / stride)
  /// + 1. Fails where the window does not fit, or a field is illegal.
  int64_t count(int64_t extent) const;
};

/// The pixels of each window: x [B, height, width, C] -> [B, windows, size^2, C], windows row by row and
/// pixels row by row (im2col). Pixels outside of the image are 0.
Tensor image_windows(const Tensor& x, const Window2d& window);
/// The largest number in each window and channel: x [B, height, width, C] -> [B, count, count, C]. Pixels
/// outside of the image do not take part. The gradient goes to the first largest.
Tensor max_pool_2d(const Tensor& x, const Window2d& window);
/// The mean of each window and channel, in which pixels outside of the image count as 0.
Tensor mean_pool_2d(const Tensor& x, const Window2d& window);

/// A convolution of images: x [B, height, width, in] -> [B, count, count, out].
class Convolution2d final : public Module {
 public:
  /// Weight [out, size^2 in], pixels row by row, drawn from `rng`. PyTorch's weight [out, in, size, size] is
  /// permute(weight, {0, 2, 3, 1}) of this shape.
  Convolution2d(int64_t in, int64_t out, const Window2d& window, Rng& rng, const LinearOptions& options = {});
  /// x [B, height, width, in] -> [B, count, count, out].
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;

  Linear linear;  ///< from the numbers of a window to the channels of a pixel

 private:
  Window2d window_;
};

}  // namespace heed
