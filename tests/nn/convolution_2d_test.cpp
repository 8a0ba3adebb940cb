// Tests nn/convolution_2d.h against plain loops.
#include "heed/nn/convolution_2d.h"

#include <cmath>
#include <functional>

#include "heed/autograd/gradcheck.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

Tensor normal(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64);
  fill_normal(x, 0, 1, rng);
  return x;
}

const std::vector<Window2d> windows = {{.size = 3, .padding = 1},
                                       {.size = 2, .stride = 2},
                                       {.size = 3, .stride = 2, .padding = 2, .dilation = 2},
                                       {.size = 1, .stride = 3},
                                       {.size = 4, .stride = 1, .padding = 3}};

/// Folds the numbers of each window: f(sum so far, the pixel's number or 0, whether it is inside, its tap).
template <class F>
std::vector<double> folded(const Tensor& x, const Window2d& window, double start, F f) {
  const std::vector<double> all = x.to_doubles();
  const int64_t height = x.extent(1), width = x.extent(2), channels = x.extent(3);
  std::vector<double> out;
  for (int64_t b = 0; b < x.extent(0); ++b)
    for (int64_t top = 0; top < window.count(height); ++top)
      for (int64_t left = 0; left < window.count(width); ++left)
        for (int64_t c = 0; c < channels; ++c) {
          double value = start;
          for (int64_t i = 0; i < window.size; ++i)
            for (int64_t j = 0; j < window.size; ++j) {
              const int64_t row = top * window.stride + i * window.dilation - window.padding;
              const int64_t column = left * window.stride + j * window.dilation - window.padding;
              const bool inside = row >= 0 && row < height && column >= 0 && column < width;
              const auto at = static_cast<size_t>(((b * height + row) * width + column) * channels + c);
              value = f(value, inside ? all[at] : 0, inside, i * window.size + j);
            }
          out.push_back(value);
        }
  return out;
}

void check_close(const Tensor& x, const std::vector<double>& expected) {
  const std::vector<double> values = x.to_doubles();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - expected[i]) <= 1e-12);
}

TEST_CASE("convolution 2d: pooling and depthwise sums are those of plain loops, gradients are right") {
  const DefaultDevice device(any_device());
  const Tensor x = normal({2, 5, 7, 3}, 1);
  for (const Window2d& window : windows) {
    INFO("size " << window.size << ", stride " << window.stride << ", padding " << window.padding);
    const double area = static_cast<double>(window.size * window.size);
    const auto sum_up = [](double value, double pixel, bool, int64_t) { return value + pixel; };
    std::vector<double> means = folded(x, window, 0, sum_up);
    for (double& value : means) value /= area;
    check_close(mean_pool_2d(x, window), means);
    const auto take_largest = [](double value, double pixel, bool inside, int64_t) {
      return inside ? std::max(value, pixel) : value;
    };
    check_close(max_pool_2d(x, window), folded(x, window, -INFINITY, take_largest));
    for (const bool is_mean : {true, false}) {
      const GradcheckReport report = gradcheck(
          [&](auto in) { return is_mean ? mean_pool_2d(in[0], window) : max_pool_2d(in[0], window); }, {x});
      INFO(to_string(report));
      CHECK(report.relative <= 1e-6);
    }
  }
}

TEST_CASE("convolution 2d: each output is the sum over pixels and channels of weight times number") {
  const DefaultDevice device(any_device());
  Rng rng(3);
  for (const Window2d& window : windows) {
    Convolution2d layer(1, 2, window, rng);
    convert(layer, DType::f64);
    fill_normal(layer.linear.bias, 0, 1, rng);
    const Tensor x = normal({2, 5, 7, 1}, 1), y = layer(x);
    CHECK((y.shape() == Shape{2, window.count(5), window.count(7), 2}));
    for (int64_t out = 0; out < 2; ++out) {
      const std::vector<double> weight = layer.linear.weight[out].to_doubles();
      const auto add = [&](double value, double pixel, bool, int64_t tap) {
        return value + pixel * weight[static_cast<size_t>(tap)];
      };
      check_close(select(y, -1, out), folded(x, window, layer.linear.bias[out].item(), add));
    }
    const GradcheckReport report = gradcheck([&](auto in) { return layer(in[0]); }, {x});
    CHECK(report.relative <= 1e-6);
  }
}

TEST_CASE("convolution 2d: illegal windows and images are named") {
  Rng rng(3);
  const Tensor x = Tensor::zeros(Shape{1, 4, 4, 3});
  CHECK_THROWS_WITH(max_pool_2d(x, {.size = 5}), containing("5 pixels do not fit into 4"));
  CHECK_THROWS_WITH(max_pool_2d(x, {.size = 2, .stride = 0}), containing("stride 0"));
  CHECK_THROWS_WITH(mean_pool_2d(Tensor::zeros(Shape{4, 4}), {}), containing("[B, height, width, channels]"));
  CHECK_THROWS_WITH(Convolution2d(2, 4, {}, rng)(x), containing("has 3 channels"));
}

}  // namespace
}  // namespace heed
