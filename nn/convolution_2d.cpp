// Windows of images by a table of their pixels, and what is computed from them.
#include "heed/nn/convolution_2d.h"

#include <limits>

#include "heed/autograd/comparisons.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

/// For each window and each of its pixels: the index of the pixel in the image, or -1 outside of it.
/// i32 [1, 1, windows size^2].
Tensor pixel_table(int64_t height, int64_t width, const Window2d& window, Device device) {
  std::vector<int32_t> table;
  const auto pixel = [&](int64_t place, int64_t tap) {
    return place * window.stride + tap * window.dilation - window.padding;
  };
  for (int64_t top = 0; top < window.count(height); ++top) {
    for (int64_t left = 0; left < window.count(width); ++left) {
      for (int64_t tap = 0; tap < window.size * window.size; ++tap) {
        const int64_t y = pixel(top, tap / window.size), x = pixel(left, tap % window.size);
        const bool is_inside = y >= 0 && y < height && x >= 0 && x < width;
        table.push_back(is_inside ? static_cast<int32_t>(y * width + x) : -1);
      }
    }
  }
  const auto size = static_cast<int64_t>(table.size());
  return constant_table(std::span<const int32_t>(table), Shape{1, 1, size}, device);
}

void check_image(const char* what, const Tensor& x) {
  if (x.rank() != 4) fail(what, ": x is ", x.shape(), "; it must be [B, height, width, channels].");
}

/// The pixels by a table, [B, windows, size^2, C].
Tensor by_table(const Tensor& x, const Tensor& table, const Window2d& window) {
  const int64_t batch = x.extent(0), pixels = x.extent(1) * x.extent(2), channels = x.extent(3);
  const Tensor rows = gather_rows(reshape(x, Shape{batch, 1, pixels, channels}), table);
  return reshape(rows, Shape{batch, -1, window.size * window.size, channels});
}

/// [B, windows, 1, C] as an image [B, count, count, C].
Tensor as_image(const Tensor& y, const Tensor& x, const Window2d& window) {
  return reshape(y, Shape{x.extent(0), window.count(x.extent(1)), window.count(x.extent(2)), y.extent(-1)});
}

}  // namespace

int64_t Window2d::count(int64_t extent) const {
  if (size < 1 || stride < 1 || dilation < 1 || padding < 0)
    fail("window: size ", size, ", stride ", stride, ", dilation ", dilation, ", padding ", padding,
         ". The first three must be at least 1, padding at least 0.");
  const int64_t last = extent + 2 * padding - dilation * (size - 1) - 1;
  if (last < 0)
    fail("window: ", dilation * (size - 1) + 1, " pixels do not fit into ", extent, " and a padding of ",
         padding, " on both sides. Use a smaller window or more padding.");
  return last / stride + 1;
}

Tensor image_windows(const Tensor& x, const Window2d& window) {
  check_image("image_windows", x);
  return by_table(x, pixel_table(x.extent(1), x.extent(2), window, x.device()), window);
}

Tensor max_pool_2d(const Tensor& x, const Window2d& window) {
  check_image("max_pool_2d", x);
  const Tensor table = pixel_table(x.extent(1), x.extent(2), window, x.device());
  Tensor pixels = by_table(x, table, window);
  if (window.padding > 0) {
    const Tensor is_inside = reshape(greater_equal(table, 0), Shape{1, -1, window.size * window.size, 1});
    pixels = where(is_inside, pixels, -std::numeric_limits<double>::infinity());
  }
  return as_image(max(pixels, 2), x, window);
}

Tensor mean_pool_2d(const Tensor& x, const Window2d& window) {
  return as_image(mean(image_windows(x, window), 2), x, window);
}

Convolution2d::Convolution2d(int64_t in, int64_t out, const Window2d& window, Rng& rng,
                             const LinearOptions& options)
    : linear(window.size * window.size * in, out, rng, options), window_(window) {}

Tensor Convolution2d::operator()(const Tensor& x) const {
  const ModuleScope within(this);
  const Tensor windows = image_windows(x, window_);
  const Tensor flat = reshape(windows, Shape{x.extent(0), windows.extent(1), -1});
  if (flat.extent(2) != linear.weight.extent(1))
    fail("convolution: x ", x.shape(), " has ", x.extent(3), " channels, and the weight is for ",
         linear.weight.extent(1) / (window_.size * window_.size), ".");
  return as_image(linear(flat), x, window_);
}

void Convolution2d::fields(Fields& f) { f("linear", linear); }

}  // namespace heed
