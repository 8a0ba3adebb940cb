// Softmax and log-softmax, with masked rows, against plain loops.
#include "heed/core/kernels/norm/softmax.h"
#include "heed/core/launch.h"

#include <algorithm>

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

std::vector<double> exact_softmax(const std::vector<double>& x, size_t width) {
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double maximum = -INFINITY, sum = 0;
    for (size_t i = row; i < row + width; ++i) maximum = std::max(maximum, x[i]);
    for (size_t i = row; i < row + width; ++i)
      sum += y[i] = maximum == -INFINITY ? 0 : std::exp(x[i] - maximum);
    for (size_t i = row; i < row + width; ++i) y[i] = sum == 0 ? 0 : y[i] / sum;
  }
  return y;
}

}  // namespace

TEST_CASE("softmax: rows of any width, and the gradient") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 2, 8, 15, 16, 33, 64, 100, 1500, 5000);
  const auto w = static_cast<size_t>(width);
  const Tensor x = random_tensor(Shape{3, 11, width}, dtype, 1, -8, 8);
  const Tensor dy = random_tensor(x.shape(), dtype, 2);
  Tensor y = empty_like(x), dx = empty_like(x);
  const auto p = exact_softmax(x.to_doubles(), w);
  const auto g = dy.to_doubles();

  launch_here<kernel::Softmax>(x, y);
  CHECK(distance(y, p) < tolerance(dtype) / 10);
  launch_here<kernel::SoftmaxBack>(y, dy, dx);
  std::vector<double> wanted(p.size());
  for (size_t row = 0; row < p.size(); row += w) {
    double inner = 0;
    for (size_t i = row; i < row + w; ++i) inner += p[i] * g[i];
    for (size_t i = row; i < row + w; ++i) wanted[i] = p[i] * (g[i] - inner);
  }
  CHECK(distance(dx, wanted) < tolerance(dtype) / 10);

  launch_here<kernel::LogSoftmax>(x, y);
  for (size_t i = 0; i < p.size(); ++i) wanted[i] = std::log(p[i]);
  CHECK(distance(y, wanted) < tolerance(dtype) / 10);
  launch_here<kernel::LogSoftmaxBack>(y, dy, dx);
  for (size_t row = 0; row < p.size(); row += w) {
    double sum = 0;
    for (size_t i = row; i < row + w; ++i) sum += g[i];
    for (size_t i = row; i < row + w; ++i) wanted[i] = g[i] - p[i] * sum;
  }
  CHECK(distance(dx, wanted) < tolerance(dtype));
}

TEST_CASE("softmax: masked entries are exactly zero, masked rows are zeros") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(3, 8, 40, 2000);
  std::vector<double> values;
  for (int64_t i = 0; i < 4 * width; ++i) {
    const int64_t row = i / width, column = i % width;
    values.push_back(row == 1 || (row == 2 && column > 0) || (row == 3 && column % 2 == 0) ? -INFINITY : 0.5);
  }
  Tensor x(Shape{4, width}, dtype), y = empty_like(x), dx = empty_like(x);
  launch<kernel::Copy>(Device::cpu, Tensor::of<double>(values, Shape{4, width}), x);
  launch_here<kernel::Softmax>(x, y);
  CHECK(distance(y, exact_softmax(values, static_cast<size_t>(width))) < tolerance(dtype));
  const auto out = y.to_doubles();
  bool zeros = true;
  for (size_t i = 0; i < out.size(); ++i) zeros = zeros && (values[i] != -INFINITY || out[i] == 0);
  CHECK(zeros);
  launch_here<kernel::SoftmaxBack>(y, random_tensor(x.shape(), dtype), dx);
  for (double slope : dx.to_doubles()) zeros = zeros && std::isfinite(slope);
  CHECK(zeros);

  launch_here<kernel::LogSoftmax>(x, y);
  const auto logs = y.to_doubles();
  for (size_t i = 0; i < out.size(); ++i)
    zeros = zeros && !std::isnan(logs[i]) && (values[i] != -INFINITY || logs[i] == -INFINITY);
  CHECK(zeros);
  launch_here<kernel::LogSoftmaxBack>(y, random_tensor(x.shape(), dtype), dx);
  for (double slope : dx.to_doubles()) zeros = zeros && std::isfinite(slope);
  CHECK(zeros);
}

TEST_CASE("softmax: large numbers do not overflow, a NaN shows") {
  const OnEachDevice here;
  const int64_t width = GENERATE(4, 100);
  std::vector<float> values(static_cast<size_t>(2 * width), 1e30F);
  values[static_cast<size_t>(width) + 1] = std::nanf("");
  const Tensor x = Tensor::from(values, Shape{2, width});
  Tensor y = empty_like(x);
  launch_here<kernel::Softmax>(x, y);
  const auto out = y.to_host();
  CHECK(out[0] == Approx(1.0 / static_cast<double>(width)));
  CHECK(std::all_of(out.begin() + width, out.end(), [](float v) { return std::isnan(v); }));
  std::vector<float> hidden(static_cast<size_t>(width), -INFINITY);
  hidden[1] = std::nanf("");
  Tensor z(Shape{1, width});
  launch_here<kernel::Softmax>(Tensor::from(hidden, Shape{1, width}), z);
  CHECK(std::isnan(z.to_host()[0]));
}

TEST_CASE("softmax: the same bits for any number of threads, in place as well") {
  const OnEachDevice here;
  const int64_t width = GENERATE(8, 64, 3000);
  const Tensor x = random_tensor(Shape{123, width});
  const auto soft = [&] {
    Tensor y = empty_like(x);
    launch_here<kernel::Softmax>(x, y);
    return y;
  };
  CHECK(same_for_any_threads(soft));
  Tensor inside = empty_like(x);
  launch<kernel::Copy>(Device::cpu, x, inside);
  launch_here<kernel::Softmax>(inside, inside);
  CHECK(same_bits(inside, soft()));
}
