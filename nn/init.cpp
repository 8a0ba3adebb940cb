// Initialisation of parameters.
#include "heed/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/autograd/comparisons.h"
#include "heed/autograd/in_place.h"
#include "heed/autograd/ops.h"

namespace heed {

Tensor init_weight(int64_t out, int64_t in, Init init, Rng& rng, double gain) {
  if (init == Init::normal) return normal_parameter(Shape{out, in}, 0.02 * gain, rng);
  if (init == Init::fan_in)
    return uniform_parameter(Shape{out, in}, gain / std::sqrt(static_cast<double>(in)), rng);
  return uniform_parameter(Shape{out, in}, gain * std::sqrt(6.0 / static_cast<double>(in + out)), rng);
}

Tensor init_bias(int64_t out, int64_t in, Init init, Rng& rng) {
  if (init != Init::fan_in && init != Init::xavier_fan_in) return constant_parameter(Shape{out}, 0);
  return uniform_parameter(Shape{out}, 1 / std::sqrt(static_cast<double>(in)), rng);
}

Tensor normal_parameter(const Shape& shape, double deviation, Rng& rng) {
  const Tensor x(shape);
  if (SkipInit::is_on())
    rng.next();
  else
    fill_normal(x, 0, deviation, rng);
  return leaf(x);
}

Tensor uniform_parameter(const Shape& shape, double bound, Rng& rng) {
  const Tensor x(shape);
  if (SkipInit::is_on())
    rng.next();
  else
    fill_uniform(x, -bound, bound, rng);
  return leaf(x);
}

Tensor he_parameter(const Shape& shape, int64_t fan_in, Rng& rng) {
  if (fan_in < 1) fail("he_parameter: fan_in = ", fan_in, ". It must be at least 1.");
  return normal_parameter(shape, std::sqrt(2.0 / static_cast<double>(fan_in)), rng);
}

Tensor truncated_normal_parameter(const Shape& shape, double deviation, Rng& rng) {
  constexpr int rounds = 12;  // each leaves 4.6 % of the numbers beyond: one of 10^16 after the last
  const Tensor x(shape), again(shape);
  fill_normal(x, 0, deviation, rng);
  for (int round = 0; round < rounds; ++round) {
    fill_normal(again, 0, deviation, rng);
    copy_(x, where(greater(abs(x), 2 * deviation), again, x));
  }
  return leaf(x);
}

Tensor orthogonal_parameter(int64_t out, int64_t in, Rng& rng, double gain) {
  const int64_t rows = std::min(out, in), width = std::max(out, in);
  const Tensor drawn(Shape{rows, width}, DType::f64, Device::cpu);
  Rng on_cpu(rng.seed(), Device::cpu);
  on_cpu.restore(rng.tick(), rng.draws());
  fill_normal(drawn, 0, 1, on_cpu);
  rng.skip_to(on_cpu.draws());
  // Gram and Schmidt, twice, so that rounding leaves no angle.
  for (int64_t i = 0; i < rows; ++i) {
    double* row = drawn.data<double>() + i * width;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* earlier = drawn.data<double>() + j * width;
        const double along = std::inner_product(row, row + width, earlier, 0.0);
        for (int64_t c = 0; c < width; ++c) row[c] -= along * earlier[c];
      }
      const double norm = std::sqrt(std::inner_product(row, row + width, row, 0.0));
      for (int64_t c = 0; c < width; ++c) row[c] /= norm;
    }
  }
  const Tensor oriented = out <= in ? drawn : contiguous(transpose(drawn, 0, 1));
  return leaf(cast(oriented * gain, DType::f32).to(default_device));
}

Tensor constant_parameter(const Shape& shape, double value) { return leaf(Tensor::full(shape, value)); }

}  // namespace heed
