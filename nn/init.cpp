// Initialisation of parameters.
#include "heed/nn/init.h"

#include <cmath>

#include "heed/autograd/tape.h"

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
  fill_normal(x, 0, deviation, rng);
  return leaf(x);
}

Tensor uniform_parameter(const Shape& shape, double bound, Rng& rng) {
  const Tensor x(shape);
  fill_uniform(x, -bound, bound, rng);
  return leaf(x);
}

Tensor constant_parameter(const Shape& shape, double value) { return leaf(Tensor::full(shape, value)); }

}  // namespace heed
