// Steps of the optimizers against a plain reference in double.
#include "heed/core/kernels/elementwise/optimizer_update.h"
#include "heed/core/launch.h"

#include <algorithm>

#include "heed/core/kernels/elementwise/muon_update.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/tests/core/kernels/tensors_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// The state tensor of the optimizers.
Tensor state_of(double rate, double steps, const Tensor& gradient, double momentum, double share = 0) {
  Tensor total(Shape{1}, DType::f64);
  launch<kernel::SquareSum>(Device::cpu, gradient, Tensor(), total);
  const std::vector<double> values = {rate, steps, total.item(), momentum, share};
  return Tensor::of<double>(values, Shape{5});
}

double clip_factor(const std::vector<double>& gradient, double clip) {
  double total = 0;
  for (double g : gradient) total += g * g;
  return clip > 0 && std::sqrt(total) > clip ? clip / std::sqrt(total) : 1;
}

double cut(double x, double bound) { return bound > 0 ? std::clamp(x, -bound, bound) : x; }

}  // namespace

TEST_CASE("optimizer step: rate, steps and momentum are written, the sum of squares stays") {
  const OnEachDevice here;
  const Tensor state = Tensor::of<double>(std::vector<double>{9, 9, 7.5, 9, 9}, Shape{5});
  launch_here<kernel::BeginOptimizerStep>(state, 0.125, int64_t{41}, 0.75, 0.5);
  CHECK(state.to_doubles() == std::vector<double>{0.125, 41, 7.5, 0.75, 0.5});
}

TEST_CASE("adamw: several steps, decoupled or not, clipped or not") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  kernel::AdamWConstants constants;
  constants.decoupled = GENERATE(true, false);
  constants.clip = GENERATE(0.0, 1.0, 1e6);
  constants.clip_value = GENERATE(0.0, 0.3);
  constants.decay = GENERATE(0.0, 0.1);
  constants.beta2 = 0.95;
  const int64_t size = 20011;
  Tensor values = random_tensor(Shape{size}, dtype, 1), first = Tensor::zeros(Shape{size}, dtype),
         second = Tensor::zeros(Shape{size}, dtype);
  auto w = values.to_doubles();
  std::vector<double> m(w.size(), 0.0), v(w.size(), 0.0);
  const double beta1s[] = {0.95, 0.9, 0.85, 0.9};
  for (int step = 0; step < 4; ++step) {
    const Tensor gradient = random_tensor(Shape{size}, dtype, static_cast<uint32_t>(10 + step));
    const double rate = 0.01 * (step + 1), beta1 = beta1s[step];
    launch_here<kernel::AdamW>(values, gradient, first, second, state_of(rate, step, gradient, beta1),
                               constants);
    const auto slopes = gradient.to_doubles();
    const double factor = clip_factor(slopes, constants.clip);
    for (size_t i = 0; i < w.size(); ++i) {
      const double g =
          factor * cut(slopes[i], constants.clip_value) + (constants.decoupled ? 0 : constants.decay * w[i]);
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = constants.beta2 * v[i] + (1 - constants.beta2) * g * g;
      const double mean = m[i] / (1 - std::pow(beta1, step + 1));
      const double square = v[i] / (1 - std::pow(constants.beta2, step + 1));
      if (constants.decoupled) w[i] -= rate * constants.decay * w[i];
      w[i] -= rate * mean / (std::sqrt(square) + constants.epsilon);
    }
  }
  CHECK(distance(values, w) < (dtype == DType::f64 ? 1e-12 : 2e-6));
  CHECK(distance(first, m) < (dtype == DType::f64 ? 1e-12 : 2e-6));
  CHECK(distance(second, v) < (dtype == DType::f64 ? 1e-12 : 2e-6));
}

TEST_CASE("adamw: the first step is the learning rate against the sign of the gradient, and 0 for none") {
  const OnEachDevice here;
  const Tensor gradient = Tensor::from({5, -1e-3F, 0});
  Tensor values = Tensor::from({1, 1, 1}), first = Tensor::zeros(Shape{3}), second = Tensor::zeros(Shape{3});
  launch_here<kernel::AdamW>(values, gradient, first, second, state_of(0.1, 0, gradient, 0.9),
                             kernel::AdamWConstants{});
  const auto out = values.to_host();
  CHECK(out[0] == Approx(0.9));
  CHECK(out[1] == Approx(1.1).epsilon(1e-4));
  CHECK(out[2] == 1);
}

TEST_CASE("sgd: momentum, decay and clipping") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const double clip_value = GENERATE(0.0, 0.3), clip = GENERATE(0.0, 2.0);
  const int64_t size = 1003;
  Tensor values = random_tensor(Shape{size}, dtype, 1), velocity = Tensor::zeros(Shape{size}, dtype);
  auto w = values.to_doubles();
  std::vector<double> speed(w.size(), 0.0);
  for (int step = 0; step < 3; ++step) {
    const Tensor gradient = random_tensor(Shape{size}, dtype, static_cast<uint32_t>(5 + step));
    const double momentum = step == 1 ? 0.8 : 0.9;
    launch_here<kernel::Sgd>(values, gradient, velocity, state_of(0.1, step, gradient, momentum), 0.01,
                             clip_value, clip);
    const auto slopes = gradient.to_doubles();
    const double factor = clip_factor(slopes, clip);
    for (size_t i = 0; i < w.size(); ++i) {
      speed[i] = momentum * speed[i] + factor * cut(slopes[i], clip_value) + 0.01 * w[i];
      w[i] -= 0.1 * speed[i];
    }
  }
  CHECK(distance(values, w) < tolerance(dtype) / 10);
  CHECK(distance(velocity, speed) < tolerance(dtype) / 10);
}

TEST_CASE("lion: the sign of a mix of mean and gradient, decay and clipping") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const kernel::AdamWConstants constants{
      .beta2 = 0.97, .decay = 0.1, .clip_value = GENERATE(0.0, 0.3), .clip = GENERATE(0.0, 2.0)};
  const int64_t size = 1003;
  Tensor values = random_tensor(Shape{size}, dtype, 1), mean = Tensor::zeros(Shape{size}, dtype);
  auto w = values.to_doubles();
  std::vector<double> m(w.size(), 0.0);
  for (int step = 0; step < 3; ++step) {
    const Tensor gradient = random_tensor(Shape{size}, dtype, static_cast<uint32_t>(5 + step));
    launch<kernel::Fill>(Device::cpu, view::slice(gradient, 0, 0, 2), 0.0);
    const double beta1 = step == 1 ? 0.8 : 0.9;
    launch_here<kernel::Lion>(values, gradient, mean, state_of(0.1, step, gradient, beta1), constants);
    const auto slopes = gradient.to_doubles();
    const double factor = clip_factor(slopes, constants.clip);
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = factor * cut(slopes[i], constants.clip_value), mix = beta1 * m[i] + (1 - beta1) * g;
      w[i] -= 0.1 * (0.1 * w[i] + (mix > 0 ? 1 : mix < 0 ? -1 : 0));
      m[i] = 0.97 * m[i] + 0.03 * g;
    }
  }
  CHECK(distance(values, w) < tolerance(dtype) / 10);
  CHECK(distance(mean, m) < tolerance(dtype) / 10);
}

TEST_CASE("schedule-free adamw: three sequences, decay and clipping") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const kernel::AdamWConstants constants{
      .beta2 = 0.95, .decay = 0.1, .clip_value = GENERATE(0.0, 0.3), .clip = GENERATE(0.0, 2.0)};
  const int64_t size = 1003;
  kernel::ScheduleFreeTensors all{.values = random_tensor(Shape{size}, dtype, 1),
                                  .base = random_tensor(Shape{size}, dtype, 2),
                                  .average = random_tensor(Shape{size}, dtype, 3),
                                  .second = Tensor::zeros(Shape{size}, dtype)};
  auto y = all.values.to_doubles(), z = all.base.to_doubles(), x = all.average.to_doubles();
  std::vector<double> v(y.size(), 0.0);
  for (int step = 0; step < 3; ++step) {
    const Tensor gradient = random_tensor(Shape{size}, dtype, static_cast<uint32_t>(5 + step));
    const double share = 1.0 / (1 + step);
    launch_here<kernel::ScheduleFree>(all, gradient, state_of(0.1, step, gradient, 0.8, share), constants);
    const auto slopes = gradient.to_doubles();
    const double factor = clip_factor(slopes, constants.clip);
    for (size_t i = 0; i < y.size(); ++i) {
      const double g = factor * cut(slopes[i], constants.clip_value);
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      z[i] -= 0.1 * (0.1 * y[i] + g / (std::sqrt(v[i] / (1 - std::pow(0.95, step + 1))) + 1e-8));
      x[i] = (1 - share) * x[i] + share * z[i];
      y[i] = 0.8 * x[i] + 0.2 * z[i];
    }
  }
  CHECK(distance(all.values, y) < tolerance(dtype) / 10);
  CHECK(distance(all.base, z) < tolerance(dtype) / 10);
  CHECK(distance(all.average, x) < tolerance(dtype) / 10);
  CHECK(distance(all.second, v) < tolerance(dtype) / 10);
}

TEST_CASE("muon kernels: direction, norms and step") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const double clip_value = GENERATE(0.0, 0.3), clip = GENERATE(0.0, 2.0);
  const int64_t size = 1203;
  const Tensor gradient = random_tensor(Shape{size}, dtype, 1), mean = random_tensor(Shape{size}, dtype, 2),
               values = random_tensor(Shape{size}, dtype, 3), direction(Shape{size}, dtype);
  const Tensor state = state_of(0.1, 0, gradient, 0.8);
  auto g = gradient.to_doubles(), m = mean.to_doubles(), w = values.to_doubles(), d = g;
  const double factor = clip_factor(g, clip);
  launch_here<kernel::MuonDirection>(gradient, mean, state, clip_value, clip, direction);
  for (size_t i = 0; i < g.size(); ++i) {
    g[i] = factor * cut(g[i], clip_value);
    m[i] = 0.8 * m[i] + 0.2 * g[i];
    d[i] = 0.8 * m[i] + 0.2 * g[i];
  }
  CHECK(distance(mean, m) < tolerance(dtype) / 10);
  CHECK(distance(direction, d) < tolerance(dtype) / 10);
  launch_here<kernel::MuonStep>(values, direction, state, 0.3, 1.5);
  for (size_t i = 0; i < w.size(); ++i) w[i] -= 0.1 * (0.3 * w[i] + 1.5 * d[i]);
  CHECK(distance(values, w) < tolerance(dtype) / 10);
  const Tensor rows = view::reshape(direction, Shape{3, size / 3}),
               squares = Tensor::of<double>(std::vector<double>{4, 0.25, 0.04}, Shape{3});
  launch_here<kernel::DivideByNorms>(rows, squares, 0.4);
  for (size_t i = 0; i < d.size(); ++i) d[i] /= i < 401 ? 2 : i < 802 ? 0.5 : 0.4;
  CHECK(distance(rows, d) < tolerance(dtype) / 10);
}

TEST_CASE("adamw: where the gradient is not finite, nothing is written") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const double bad = GENERATE(double(NAN), HUGE_VAL, -HUGE_VAL);
  const int64_t size = 100;
  Tensor gradient = random_tensor(Shape{size}, dtype, 1);
  launch<kernel::Fill>(Device::cpu, view::slice(gradient, 0, 70, 71), bad);
  const Tensor values = random_tensor(Shape{size}, dtype, 2), first = random_tensor(Shape{size}, dtype, 3),
               second = random_tensor(Shape{size}, dtype, 4);
  const auto w = values.to_doubles(), m = first.to_doubles(), v = second.to_doubles();
  launch_here<kernel::AdamW>(values, gradient, first, second, state_of(0.1, 3, gradient, 0.9),
                             kernel::AdamWConstants{});
  CHECK(values.to_doubles() == w);
  CHECK(first.to_doubles() == m);
  CHECK(second.to_doubles() == v);
  launch_here<kernel::Sgd>(values, gradient, first, state_of(0.1, 3, gradient, 0.9), 0.1, 0, 1);
  launch_here<kernel::Lion>(values, gradient, first, state_of(0.1, 3, gradient, 0.9),
                            kernel::AdamWConstants{});
  launch_here<kernel::ScheduleFree>(kernel::ScheduleFreeTensors{values, first, values, second}, gradient,
                                    state_of(0.1, 3, gradient, 0.9), kernel::AdamWConstants{});
  launch_here<kernel::MuonDirection>(gradient, first, state_of(0.1, 3, gradient, 0.9), 0, 0, second);
  launch_here<kernel::MuonStep>(values, first, state_of(0.1, 3, gradient, 0.9), 0.1, 1);
  CHECK(values.to_doubles() == w);
  CHECK(first.to_doubles() == m);
  CHECK(second.to_doubles() == v);
}
