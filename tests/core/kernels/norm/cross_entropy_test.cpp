// Cross entropy with smoothing and ignored rows against plain loops.
#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/core/launch.h"

#include <algorithm>

#include "heed/tests/core/kernels/tensors_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

constexpr int32_t ignore = -1;

struct Exact {
  double loss = 0, counted = 0;
  std::vector<double> slopes;
};

Exact exact(const std::vector<double>& x, const std::vector<double>& targets, double smoothing,
            double dloss) {
  const size_t rows = targets.size(), width = x.size() / rows;
  Exact out;
  out.slopes.assign(x.size(), 0.0);
  for (double target : targets) out.counted += target != ignore ? 1 : 0;
  for (size_t row = 0; row < rows; ++row) {
    if (targets[row] == ignore) continue;
    const double* in = x.data() + row * width;
    double maximum = -INFINITY, total = 0, mean = 0;
    for (size_t i = 0; i < width; ++i) maximum = std::max(maximum, in[i]);
    for (size_t i = 0; i < width; ++i) {
      total += std::exp(in[i] - maximum);
      mean += in[i] / static_cast<double>(width);
    }
    const double lse = maximum + std::log(total);
    const auto target = static_cast<size_t>(targets[row]);
    out.loss += (lse - (1 - smoothing) * in[target] - (smoothing == 0 ? 0 : smoothing * mean)) / out.counted;
    for (size_t i = 0; i < width; ++i) {
      out.slopes[row * width + i] = dloss / out.counted *
                                    (std::exp(in[i] - lse) - (i == target ? 1 - smoothing : 0) -
                                     smoothing / static_cast<double>(width));
    }
  }
  return out;
}

struct Run {
  Tensor lse, loss, counted, slopes;
};

Run run(const Tensor& logits, const Tensor& targets, double smoothing, double dloss, bool in_place = false) {
  Run out{Tensor(Shape{logits.extent(0)}, logits.dtype()), Tensor(Shape{1}, logits.dtype()),
          Tensor(Shape{1}, logits.dtype()), empty_like(logits)};
  launch_here<kernel::CrossEntropy>(logits, targets, smoothing, ignore, out.lse, out.loss, out.counted);
  if (in_place) launch<kernel::Copy>(Device::cpu, logits, out.slopes);
  launch_here<kernel::CrossEntropyBack>(
      kernel::CrossEntropyBackTensors{.logits = in_place ? out.slopes : logits,
                                      .targets = targets,
                                      .lse = out.lse,
                                      .counted = out.counted,
                                      .dloss = Tensor::full(Shape{1}, dloss, logits.dtype()),
                                      .dlogits = out.slopes},
      smoothing, ignore);
  return out;
}

}  // namespace

TEST_CASE("cross_entropy: loss and gradient, smoothing, ignored rows") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(2, 10, 65, 1024, 3000);
  const double smoothing = GENERATE(0.0, 0.1);
  const Tensor logits = random_tensor(Shape{23, width}, dtype, 1, -9, 9);
  const Tensor targets = random_ids(Shape{23}, static_cast<int32_t>(width));
  for (int row : {0, 4, 22}) targets.data<int32_t>()[row] = ignore;
  const Exact wanted = exact(logits.to_doubles(), targets.to_doubles(), smoothing, 3);
  const Run out = run(logits, targets, smoothing, 3);
  CHECK(out.loss.item() == Approx(wanted.loss).epsilon(dtype == DType::f64 ? 1e-13 : 1e-6));
  CHECK(out.counted.item() == 20);
  CHECK(distance(out.slopes, wanted.slopes) < tolerance(dtype) / 10);
  CHECK(same_bits(run(logits, targets, smoothing, 3, true).slopes, out.slopes));
}

TEST_CASE("cross_entropy: rows whose largest logit comes last, masked logits, huge logits") {
  const OnEachDevice here;
  std::vector<float> values(3 * 2500);
  for (size_t i = 0; i < 2500; ++i) {
    values[i] = static_cast<float>(i) * 0.1F;
    values[2500 + i] = i < 2000 ? -INFINITY : 1.F;
    values[5000 + i] = i == 17 ? 3e38F : -3e38F;
  }
  const Tensor logits = Tensor::from(values, Shape{3, 2500});
  const std::vector<int32_t> ids = {2499, 2100, 17};
  const Tensor targets = Tensor::of<int32_t>(ids, Shape{3});
  const Run out = run(logits, targets, 0, 1);
  const auto lse = out.lse.to_host();
  CHECK(lse[0] == Approx(249.9 - std::log(1 - std::exp(-0.1))).epsilon(1e-6));
  CHECK(lse[1] == Approx(1 + std::log(500.0)).epsilon(1e-6));
  CHECK(lse[2] == 3e38F);
  CHECK(distance(out.slopes, exact(logits.to_doubles(), targets.to_doubles(), 0, 1).slopes) < 1e-5);
}

TEST_CASE("cross_entropy: all rows ignored costs nothing and pulls nowhere") {
  const OnEachDevice here;
  const Run out = run(random_tensor(Shape{4, 9}), Tensor::full(Shape{4}, ignore, DType::i32), 0.1, 1);
  CHECK(out.loss.item() == 0);
  CHECK(out.counted.item() == 0);
  CHECK(out.slopes.to_host() == std::vector<float>(36, 0.F));
}

TEST_CASE("cross_entropy: a NaN shows in the loss") {
  const OnEachDevice here;
  const Tensor logits = random_tensor(Shape{4, 50});
  logits.data<float>()[75] = std::nanf("");
  CHECK(std::isnan(run(logits, random_ids(Shape{4}, 50), 0, 1).loss.item()));
}

TEST_CASE("cross_entropy: a wrong target is named with its row") {
  const OnEachDevice here;
  const Tensor targets = random_ids(Shape{6}, 10);
  for (int32_t wrong : {10, -2}) {
    targets.data<int32_t>()[3] = wrong;
    CHECK_THROWS_WITH(run(random_tensor(Shape{6, 10}), targets, 0, 1),
                      containing("target " + std::to_string(wrong) + " of row 3") && containing("0 to 9"));
  }
}

TEST_CASE("cross_entropy: the same bits for any number of threads") {
  const OnEachDevice here;
  const Tensor logits = random_tensor(Shape{301, 700});
  const Tensor targets = random_ids(Shape{301}, 700);
  CHECK(same_for_any_threads([&] { return run(logits, targets, 0.1, 1).loss; }));
  CHECK(same_for_any_threads([&] { return run(logits, targets, 0.1, 1).slopes; }));
}
