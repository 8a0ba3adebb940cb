// Layer norm by variance and by sample deviation, and RMS norm, against plain loops and central differences.
#include "heed/core/kernels/norm/layer_norm.h"
#include "heed/core/launch.h"

#include "heed/tests/core/kernels/tensors_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;
using kernel::NormScale;

namespace {

std::vector<double> exact(const std::vector<double>& x, const std::vector<double>& gain,
                          const std::vector<double>& bias, double epsilon, NormScale scale) {
  const size_t width = gain.size();
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < width; ++i) mean += x[row + i] / static_cast<double>(width);
    if (scale == NormScale::rms) mean = 0;
    for (size_t i = 0; i < width; ++i) squares += (x[row + i] - mean) * (x[row + i] - mean);
    const double divisor = scale != NormScale::deviation
                               ? std::sqrt(squares / static_cast<double>(width) + epsilon)
                               : std::sqrt(squares / static_cast<double>(width - 1)) + epsilon;
    for (size_t i = 0; i < width; ++i) {
      y[row + i] = gain[i] * (x[row + i] - mean) / divisor + (bias.empty() ? 0 : bias[i]);
    }
  }
  return y;
}

}  // namespace

TEST_CASE("layer_norm: values, with and without a bias") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const NormScale scale = GENERATE(NormScale::variance, NormScale::deviation, NormScale::rms);
  const int64_t width = GENERATE(2, 7, 16, 128, 500);
  const int64_t rows = 45;
  const Tensor x = random_tensor(Shape{rows, width}, dtype, 1, 2, 5);
  const Tensor gain = random_tensor(Shape{width}, dtype, 2), bias = random_tensor(Shape{width}, dtype, 3);
  Tensor y = empty_like(x), mean(Shape{rows}, dtype), rstd(Shape{rows}, dtype);
  launch_here<kernel::LayerNorm>(
      kernel::LayerNormTensors{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd}, 1e-3,
      scale);
  CHECK(distance(y, exact(x.to_doubles(), gain.to_doubles(), bias.to_doubles(), 1e-3, scale)) <
        tolerance(dtype) * 5);
  launch_here<kernel::LayerNorm>(
      kernel::LayerNormTensors{.x = x, .gain = gain, .bias = Tensor(), .y = y, .mean = mean, .rstd = rstd},
      1e-3, scale);
  CHECK(distance(y, exact(x.to_doubles(), gain.to_doubles(), {}, 1e-3, scale)) < tolerance(dtype) * 5);
}

TEST_CASE("layer_norm: gradients by central differences") {
  const OnEachDevice here;
  const NormScale scale = GENERATE(NormScale::variance, NormScale::deviation, NormScale::rms);
  const int64_t width = GENERATE(2, 5, 19, 40);
  const double epsilon = GENERATE(1e-5, 0.3);
  const int64_t rows = 6;
  const DType dtype = DType::f64;
  const Tensor x = random_tensor(Shape{rows, width}, dtype, 1), gain = random_tensor(Shape{width}, dtype, 2),
               bias = random_tensor(Shape{width}, dtype, 3), dy = random_tensor(Shape{rows, width}, dtype, 4);
  Tensor y = empty_like(x), mean(Shape{rows}, dtype), rstd(Shape{rows}, dtype);
  Tensor dx = empty_like(x), dgain = empty_like(gain), dbias = empty_like(gain);
  launch_here<kernel::LayerNorm>(
      kernel::LayerNormTensors{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd},
      epsilon, scale);
  launch_here<kernel::LayerNormBack>(kernel::LayerNormBackTensors{.x = x,
                                                                  .gain = gain,
                                                                  .mean = mean,
                                                                  .rstd = rstd,
                                                                  .dy = dy,
                                                                  .dx = dx,
                                                                  .dgain = dgain,
                                                                  .dbias = dbias},
                                     epsilon, scale);

  const auto g = dy.to_doubles();
  auto values = x.to_doubles(), gains = gain.to_doubles(), biases = bias.to_doubles();
  const auto slope = [&](double& of) {
    const double before = of, h = 1e-5;
    of = before + h;
    const auto high = exact(values, gains, biases, epsilon, scale);
    of = before - h;
    const auto low = exact(values, gains, biases, epsilon, scale);
    of = before;
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += g[i] * (high[i] - low[i]) / (2 * h);
    return sum;
  };
  const auto slopes = [&](std::vector<double>& of) {
    std::vector<double> out;
    for (double& value : of) out.push_back(slope(value));
    return out;
  };
  // Two numbers a row leave only the sign, so the slope is tiny against the curvature that differences see.
  const double allowed = width == 2 ? 1e-3 : 1e-6;
  CHECK(distance(dx, slopes(values)) < allowed);
  CHECK(distance(dgain, slopes(gains)) < allowed);
  CHECK(distance(dbias, slopes(biases)) < 1e-8);
}

TEST_CASE("layer_norm: float gradients follow the double ones, an empty bias gets none") {
  const OnEachDevice here;
  const NormScale scale = GENERATE(NormScale::variance, NormScale::deviation, NormScale::rms);
  const int64_t rows = 300, width = 200;
  const auto run = [&](DType dtype, bool with_bias) {
    const Tensor x = random_tensor(Shape{rows, width}, dtype, 1),
                 gain = random_tensor(Shape{width}, dtype, 2),
                 dy = random_tensor(Shape{rows, width}, dtype, 4);
    Tensor y = empty_like(x), mean(Shape{rows}, dtype), rstd(Shape{rows}, dtype);
    Tensor all(Shape{rows * width + width}, dtype);
    Tensor dx = all.seen_as(x.shape(), x.strides(), 0), dgain = view::slice(all, 0, rows * width, all.size());
    launch_here<kernel::LayerNorm>(
        kernel::LayerNormTensors{.x = x, .gain = gain, .bias = Tensor(), .y = y, .mean = mean, .rstd = rstd},
        1e-6, scale);
    launch_here<kernel::LayerNormBack>(
        kernel::LayerNormBackTensors{.x = x,
                                     .gain = gain,
                                     .mean = mean,
                                     .rstd = rstd,
                                     .dy = dy,
                                     .dx = dx,
                                     .dgain = dgain,
                                     .dbias = with_bias ? empty_like(gain) : Tensor()},
        1e-6, scale);
    return all;
  };
  CHECK(distance(run(DType::f32, true), run(DType::f64, false)) < 2e-5);
  CHECK(same_for_any_threads([&] { return run(DType::f32, true); }));
}

TEST_CASE("layer_norm: a constant row gives the bias and no NaN") {
  const OnEachDevice here;
  const NormScale scale = GENERATE(NormScale::variance, NormScale::deviation);
  const Tensor x = Tensor::full(Shape{3, 20}, 7), gain = Tensor::full(Shape{20}, 1),
               bias = Tensor::full(Shape{20}, 0.5);
  Tensor y = empty_like(x), mean(Shape{3}), rstd(Shape{3}), dx = empty_like(x), dgain = empty_like(gain),
         dbias = empty_like(gain);
  launch_here<kernel::LayerNorm>(
      kernel::LayerNormTensors{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd}, 1e-6,
      scale);
  CHECK(y.to_host() == std::vector<float>(60, 0.5F));
  launch_here<kernel::LayerNormBack>(kernel::LayerNormBackTensors{.x = x,
                                                                  .gain = gain,
                                                                  .mean = mean,
                                                                  .rstd = rstd,
                                                                  .dy = random_tensor(Shape{3, 20}),
                                                                  .dx = dx,
                                                                  .dgain = dgain,
                                                                  .dbias = dbias},
                                     1e-6, scale);
  bool finite = true;
  for (float slope : dx.to_host()) finite = finite && std::isfinite(slope);
  CHECK(finite);
}
