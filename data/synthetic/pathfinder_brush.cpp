// Draws the stamps of Pathfinder.
#include "heed/data/synthetic/pathfinder_brush.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heed {
namespace {

constexpr int64_t finer = 2;  // pixels of the finer grid, on which stamps are drawn, per pixel of the image

/// The three-lobed Lanczos filter: sinc(x) sinc(x / 3) within 3 of 0.
double lanczos(double x) {
  x = std::abs(x);
  if (x >= 3) return 0;
  if (x < 1e-12) return 1;
  const double a = std::numbers::pi * x, b = a / 3;
  return std::sin(a) / a * std::sin(b) / b;
}

/// Weights of consecutive pixels of the larger row, from `first` on, for one pixel of the smaller row.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;

  /// The weighted sum of pixels that lie `stride` apart, rounded to 0 .. 255; `row` is pixel 0 of the larger
  /// row.
  float operator()(const float* row, int64_t stride) const {
    double sum = 0;
    for (size_t k = 0; k < weights.size(); ++k)
      sum += weights[k] * static_cast<double>(row[(first + static_cast<int64_t>(k)) * stride]);
    return static_cast<float>(std::clamp(std::floor(sum + 0.5), 0.0, 255.0));
  }
};

/// The taps of each pixel of the smaller row.
std::vector<Taps> lanczos_taps(int64_t large, int64_t small) {
  const double scale = static_cast<double>(large) / static_cast<double>(small), support = 3 * scale;
  std::vector<Taps> out(static_cast<size_t>(small));
  for (int64_t i = 0; i < small; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(middle - support + 0.5));
    const auto end = std::min<int64_t>(large, static_cast<int64_t>(middle + support + 0.5));
    Taps& taps = out[static_cast<size_t>(i)];
    taps.first = first;
    double sum = 0;
    for (int64_t x = first; x < end; ++x) {
      taps.weights.push_back(lanczos((static_cast<double>(x) - middle + 0.5) / scale));
      sum += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= sum;
  }
  return out;
}

/// An image [side, side] with a line from its middle to an offset: pixels whose centre is within half the
/// width of the line are 255; of a line of width one, the nearest pixels.
std::vector<float> line_image(int64_t side, int64_t row, int64_t column, int64_t width) {
  std::vector<float> image(static_cast<size_t>(side * side), 0.0f);
  const int64_t middle = side / 2;
  const auto set = [&](int64_t y, int64_t x) {
    if (y >= 0 && y < side && x >= 0 && x < side) image[static_cast<size_t>(y * side + x)] = 255;
  };
  const double length = std::hypot(static_cast<double>(row), static_cast<double>(column));
  if (width <= 1 || length == 0) {
    const int64_t steps = std::max({std::abs(row), std::abs(column), int64_t{1}});
    for (int64_t i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / static_cast<double>(steps);
      set(middle + std::lround(t * static_cast<double>(row)),
          middle + std::lround(t * static_cast<double>(column)));
    }
    return image;
  }
  const double down = static_cast<double>(row) / length, right = static_cast<double>(column) / length;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const auto dy = static_cast<double>(y - middle), dx = static_cast<double>(x - middle);
      const double along = dy * down + dx * right, across = std::abs(dy * right - dx * down);
      if (along >= -0.5 && along <= length + 0.5 && across <= static_cast<double>(width) / 2) set(y, x);
    }
  }
  return image;
}

/// The image with all pixels within `radius` of a pixel other than 0 set to 255.
std::vector<float> dilated(const std::vector<float>& image, int64_t side, int64_t radius) {
  std::vector<float> out(image.size(), 0.0f);
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      if (image[static_cast<size_t>(y * side + x)] == 0) continue;
      for (int64_t dy = -radius; dy <= radius; ++dy) {
        for (int64_t dx = -radius; dx <= radius; ++dx) {
          const int64_t row = y + dy, column = x + dx;
          if (dy * dy + dx * dx > radius * radius || row < 0 || row >= side || column < 0 || column >= side)
            continue;
          out[static_cast<size_t>(row * side + column)] = 255;
        }
      }
    }
  }
  return out;
}

/// Divides values of 0 .. 255 by 255.
void to_unit(std::vector<float>& values) {
  for (float& value : values) value /= 255;
}

}  // namespace

std::vector<float> lanczos_down(const std::vector<float>& image, int64_t large, int64_t small) {
  const std::vector<Taps> taps = lanczos_taps(large, small);
  std::vector<float> narrow(static_cast<size_t>(large * small)), out(static_cast<size_t>(small * small));
  for (int64_t y = 0; y < large; ++y) {
    for (int64_t x = 0; x < small; ++x)
      narrow[static_cast<size_t>(y * small + x)] =
          taps[static_cast<size_t>(x)](&image[static_cast<size_t>(y * large)], 1);
  }
  for (int64_t y = 0; y < small; ++y) {
    for (int64_t x = 0; x < small; ++x)
      out[static_cast<size_t>(y * small + x)] =
          taps[static_cast<size_t>(y)](&narrow[static_cast<size_t>(x)], small);
  }
  return out;
}

Brush::Brush(const PathfinderOptions& options, int64_t gap)
    : options_(options), gap_(gap), dash_length_(options.dash * finer) {
  for (int64_t row = -dash_length_; row <= dash_length_; ++row) {
    for (int64_t column = -dash_length_; column <= dash_length_; ++column)
      dashes_.push_back(make_dash(row, column));
  }
  // Points lie a pixel apart on the arc; of those in one pixel, one turn is kept.
  const auto radius_of_turns = static_cast<double>(options.dash + gap);
  for (double angle = 0; angle < 2 * std::numbers::pi - 1e-9; angle += 1 / radius_of_turns) {
    const auto row = static_cast<int64_t>(std::floor(radius_of_turns * std::sin(angle)));
    const auto column = static_cast<int64_t>(std::floor(radius_of_turns * std::cos(angle)));
    turns_.push_back({row, column, std::atan2(static_cast<double>(row), static_cast<double>(column))});
  }
  const auto pixel_of = [](const Turn& turn) { return std::pair(turn.row, turn.column); };
  std::ranges::sort(turns_, {}, pixel_of);
  const auto repeats = std::ranges::unique(turns_, {}, pixel_of);
  turns_.erase(repeats.begin(), repeats.end());
  // The disc has a margin as wide as the filter, so that it is downscaled as if inside of a whole image.
  disc_.reach = static_cast<int64_t>(std::ceil(options.marker)) + 4;
  const int64_t side = 2 * disc_.reach + 1, large = side * finer, middle = disc_.reach * finer;  // pixels
  std::vector<float> image(static_cast<size_t>(large * large), 0.0f);
  const double radius = options.marker * finer;
  for (int64_t y = 0; y < large; ++y) {
    for (int64_t x = 0; x < large; ++x) {
      const auto dy = static_cast<double>(y - middle), dx = static_cast<double>(x - middle);
      if (dy * dy + dx * dx <= radius * radius) image[static_cast<size_t>(y * large + x)] = 255;
    }
  }
  disc_.ink = lanczos_down(image, large, side);
  to_unit(disc_.ink);
}

Stamp Brush::make_dash(int64_t row, int64_t column) const {
  Stamp stamp;
  stamp.reach = options_.dash + static_cast<int64_t>(std::ceil(options_.thickness)) + gap_;
  const int64_t side = 2 * stamp.reach + 1, large = 2 * stamp.reach * finer + 1;
  const std::vector<float> image = line_image(large, row, column, std::lround(options_.thickness * finer));
  stamp.ink = lanczos_down(image, large, side);
  stamp.room = lanczos_down(dilated(image, large, gap_ * finer), large, side);
  to_unit(stamp.ink);
  to_unit(stamp.room);
  return stamp;
}

int64_t Brush::end_coordinate(double part) const {
  // Rounds up, except for rounding errors of whole numbers.
  return static_cast<int64_t>(std::ceil(static_cast<double>(dash_length_) * part - 1e-9));
}

const Stamp& Brush::dash(double direction) const {
  const int64_t row = end_coordinate(std::sin(direction)), column = end_coordinate(std::cos(direction));
  return dashes_[static_cast<size_t>((row + dash_length_) * (2 * dash_length_ + 1) + column + dash_length_)];
}

}  // namespace heed
