// Layer norm by variance and by sample deviation, and RMS norm, against plain loops and central differences.
#include "heed/core/kernels/norm/layer_norm.h"
#include "heed/core/kernels/elementwise/apply.h"
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

TEST_CASE("layer_norm: the gradient of x from elsewhere is added") {
  const OnEachDevice here;
  const int64_t rows = 30, width = GENERATE(7, 200, 1500);
  const Tensor x = random_tensor(Shape{rows, width}, DType::f32, 1),
               gain = random_tensor(Shape{width}, DType::f32, 2),
               dy = random_tensor(Shape{rows, width}, DType::f32, 3),
               so_far = random_tensor(Shape{rows, width}, DType::f32, 4);
  const Tensor y = empty_like(x), mean(Shape{rows}), rstd(Shape{rows});
  launch_here<kernel::LayerNorm>(
      kernel::LayerNormTensors{.x = x, .gain = gain, .bias = Tensor(), .y = y, .mean = mean, .rstd = rstd},
      1e-6, NormScale::variance);
  const auto gradient = [&](const Tensor& earlier) {
    const Tensor dx = empty_like(x), dgain = empty_like(gain);
    launch_here<kernel::LayerNormBack>(kernel::LayerNormBackTensors{.x = x,
                                                                    .gain = gain,
                                                                    .mean = mean,
                                                                    .rstd = rstd,
                                                                    .dy = dy,
                                                                    .dx = dx,
                                                                    .dgain = dgain,
                                                                    .dbias = Tensor(),
                                                                    .so_far = earlier},
                                       1e-6, NormScale::variance);
    return dx;
  };
  std::vector<double> wanted = gradient({}).to_doubles();
  const std::vector<double> addends = so_far.to_doubles();
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += addends[i];
  CHECK(distance(gradient(so_far), wanted) < 1e-6);
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

TEST_CASE("layer_norm: of a sum with a dropped branch, it gives what its parts give") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const NormScale scale = GENERATE(NormScale::variance, NormScale::deviation, NormScale::rms);
  const int64_t width = GENERATE(1, 7, 16, 100, 161, 500, 700, 1000, 1500);
  const double p = GENERATE(0.0, 0.3);
  const bool packed = GENERATE(false, true);
  const int64_t rows = 11;
  kernel::DropoutMask mask{.p = p};
  if (p > 0) mask.draw = {5, 6, Tensor::full(Shape{1}, 7, DType::i64)};
  if (packed) {
    const std::vector<int32_t> places{0, 1, 2, 8, 9, 10, 11, 16, 17, 18, 24};
    mask.places = {Tensor::of<int32_t>(places, Shape{rows}), 32};
  }
  const Shape shape = packed ? Shape{1, rows, width} : Shape{rows, width};
  const Tensor x = random_tensor(shape, dtype, 1), branch = random_tensor(shape, dtype, 2),
               gain = random_tensor(Shape{width}, dtype, 3), bias = random_tensor(Shape{width}, dtype, 4);
  const auto tensors = [&] {
    const Tensor mean(Shape{rows}, dtype);
    return kernel::LayerNormTensors{.x = Tensor(Shape{rows, width}, dtype),
                                    .gain = gain,
                                    .bias = bias,
                                    .y = Tensor(Shape{rows, width}, dtype),
                                    .mean = mean,
                                    .rstd = empty_like(mean)};
  };
  const kernel::LayerNormTensors parts = tensors(), fused = tensors();
  const Tensor dropped = p > 0 ? empty_like(branch) : branch,
               sum = parts.x.seen_as(shape, Tensor(shape, dtype).strides(), 0);
  if (p > 0) launch_here<kernel::Dropout>(branch, mask, dropped);
  launch_here<kernel::Zip<Add>>(x, dropped, sum);
  launch_here<kernel::LayerNorm>(parts, 1e-3, scale);
  const auto run = [&] { launch_here<kernel::AddDropoutNorm>(x, branch, mask, fused, 1e-3, scale); };
  run();
  const auto check = [&](const Tensor& a, const Tensor& b) {
    if (device_here() == Device::cpu) CHECK(same_bits(a, b));
    CHECK(distance(a, b) < 10 * tolerance(dtype));
  };
  check(fused.x, parts.x);
  check(fused.mean, parts.mean);
  if (width > 1) check(fused.rstd, parts.rstd);
  check(fused.y, parts.y);
  CHECK(same_for_any_threads([&] {
    run();
    return fused.y;
  }));
}

TEST_CASE(
    "layer_norm: activations of bf16 are computed in f32 and rounded once, gradients of gain not at all") {
  const OnEachDevice here;
  const int64_t width = GENERATE(7, 100, 1000, 1500), rows = 33;
  const auto as = [](DType dtype, const Tensor& from) {
    const Tensor to(from.shape(), dtype);
    launch<kernel::Copy>(Device::cpu, from, to);
    return to;
  };
  const Shape shape{rows, width};
  const Tensor x = random_tensor(shape, DType::bf16, 1), branch = random_tensor(shape, DType::bf16, 2),
               dy = random_tensor(shape, DType::bf16, 5);
  const Tensor gain = random_tensor(Shape{width}, DType::f32, 3),
               bias = random_tensor(Shape{width}, DType::f32, 4);
  const kernel::DropoutMask mask{.p = 0.3, .draw = {5, 6, Tensor::full(Shape{1}, 7, DType::i64)}};
  struct Found {
    Tensor sum, y, dx, dgain, dbias;
  };
  const auto run = [&](DType dtype) {
    const Tensor mean(Shape{rows}), rstd(Shape{rows});
    const kernel::LayerNormTensors t{.x = Tensor(shape, dtype),
                                     .gain = gain,
                                     .bias = bias,
                                     .y = Tensor(shape, dtype),
                                     .mean = mean,
                                     .rstd = rstd};
    if (dtype == DType::bf16) {
      launch_here<kernel::AddDropoutNorm>(x, branch, mask, t, 1e-3, NormScale::variance);
    } else {  // the norm is that of the rounded sum, which the backward pass reads
      const Tensor rounded(shape, DType::bf16);
      launch_here<kernel::AddDropout>(x, branch, mask, rounded);
      launch<kernel::Copy>(Device::cpu, rounded, t.x);
      launch_here<kernel::LayerNorm>(t, 1e-3, NormScale::variance);
    }
    const Found found{t.x, t.y, Tensor(shape, dtype), empty_like(gain), empty_like(bias)};
    launch_here<kernel::LayerNormBack>(kernel::LayerNormBackTensors{.x = t.x,
                                                                    .gain = gain,
                                                                    .mean = mean,
                                                                    .rstd = rstd,
                                                                    .dy = as(dtype, dy),
                                                                    .dx = found.dx,
                                                                    .dgain = found.dgain,
                                                                    .dbias = found.dbias},
                                       1e-3, NormScale::variance);
    return found;
  };
  const Found narrow = run(DType::bf16), wide = run(DType::f32);
  CHECK(same_bits(narrow.sum, as(DType::bf16, wide.sum)));
  CHECK(same_bits(narrow.y, as(DType::bf16, wide.y)));
  CHECK(same_bits(narrow.dx, as(DType::bf16, wide.dx)));
  CHECK(same_bits(narrow.dgain, wide.dgain));
  CHECK(same_bits(narrow.dbias, wide.dbias));
}

TEST_CASE("layer_norm: the gradient of a dropped branch is dropout of the gradient of the sum") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::bf16, DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 40, 64, 100, 700, 1024, 1500);
  const bool packed = GENERATE(false, true), has_so_far = GENERATE(false, true);
  const int64_t rows = 11;
  const Shape shape{rows, width};
  const DType dtype_of_gain = dtype == DType::bf16 ? DType::f32 : dtype;
  kernel::DropoutMask mask{.p = 0.3, .draw = {5, 6, Tensor::full(Shape{1}, 7, DType::i64)}};
  if (packed) {
    const std::vector<int32_t> places{0, 1, 2, 8, 9, 10, 11, 16, 17, 18, 24};
    mask.places = {Tensor::of<int32_t>(places, Shape{rows}), 32};
  }
  const Tensor x = random_tensor(shape, dtype, 1), dy = random_tensor(shape, dtype, 2),
               so_far = has_so_far ? random_tensor(shape, dtype, 3) : Tensor(),
               gain = random_tensor(Shape{width}, dtype_of_gain, 4),
               mean = random_tensor(Shape{rows}, dtype_of_gain, 5),
               rstd = random_tensor(Shape{rows}, dtype_of_gain, 6);
  struct Found {
    Tensor dx, dgain, dbranch;
  };
  const auto run = [&](bool fused) {
    const Found found{Tensor(shape, dtype), empty_like(gain), Tensor(shape, dtype)};
    launch_here<kernel::LayerNormBack>(
        kernel::LayerNormBackTensors{.x = x,
                                     .gain = gain,
                                     .mean = mean,
                                     .rstd = rstd,
                                     .dy = dy,
                                     .dx = found.dx,
                                     .dgain = found.dgain,
                                     .dbias = {},
                                     .so_far = so_far,
                                     .dbranch = fused ? found.dbranch : Tensor(),
                                     .mask = fused ? mask : kernel::DropoutMask{}},
        1e-3, NormScale::variance);
    return found;
  };
  const Found alone = run(false), fused = run(true);
  // Dropout of packed rows takes them as [1, N, W].
  const auto in_rows = [&](const Tensor& each) {
    return packed ? view::reshape(each, Shape{1, rows, width}) : each;
  };
  launch_here<kernel::Dropout>(in_rows(alone.dx), mask, in_rows(alone.dbranch));
  CHECK(same_bits(fused.dx, alone.dx));
  CHECK(same_bits(fused.dgain, alone.dgain));
  CHECK(same_bits(fused.dbranch, alone.dbranch));
}
