// Optimizer steps on the CPU.
#include "heed/core/kernels/elementwise/adamw.h"

#include <cmath>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// What the gradient is multiplied by so that its norm is at most `clip`.
double clip_scale(double square_sum, double clip) {
  const double norm = std::sqrt(square_sum);
  return clip > 0 && norm > clip ? clip / norm : 1;
}

}  // namespace

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, value -= rate (decay value + m' / (sqrt(v') +
/// epsilon)), where m' and v' are m and v without their bias and g is the clipped gradient. Adam adds decay
/// value to g instead. One task is some elements.
template <>
void AdamW::cpu<here>(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                      const Tensor& state, const AdamWConstants& constants) {
  const auto* now = state.data<double>();
  if (!std::isfinite(now[2])) return;
  const double rate = now[0], steps = now[1] + 1, keep = now[3];
  visit_float("adamw", values.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T scale = static_cast<T>(clip_scale(now[2], constants.clip));
    const T beta1 = static_cast<T>(keep), beta2 = static_cast<T>(constants.beta2);
    const T rest1 = static_cast<T>(1 - keep), rest2 = static_cast<T>(1 - constants.beta2);
    const T step = static_cast<T>(rate / (1 - std::pow(keep, steps)));
    const T root = static_cast<T>(1 / std::sqrt(1 - std::pow(constants.beta2, steps)));
    const T epsilon = static_cast<T>(constants.epsilon);
    const T shrink = static_cast<T>(constants.decoupled ? rate * constants.decay : 0);
    const T pull = static_cast<T>(constants.decoupled ? 0 : constants.decay);
    T* value = values.data<T>();
    const T* grad = gradient.data<T>();
    T* m = first.data<T>();
    T* v = second.data<T>();
    parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const T g = scale * grad[i] + pull * value[i];
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
        value[i] = value[i] - shrink * value[i] - step * m[i] / (std::sqrt(v[i]) * root + epsilon);
      }
    });
  });
  Count::add(values.size());
}

/// velocity = momentum velocity + g + decay value, value -= rate velocity, where g is the clipped gradient.
/// One task is some elements.
template <>
void Sgd::cpu<here>(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
                    double decay, double clip) {
  const auto* now = state.data<double>();
  if (!std::isfinite(now[2])) return;
  visit_float("sgd", values.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T rate = static_cast<T>(now[0]);
    const T scale = static_cast<T>(clip_scale(now[2], clip));
    const T keep = static_cast<T>(now[3]), pull = static_cast<T>(decay);
    T* value = values.data<T>();
    const T* grad = gradient.data<T>();
    T* speed = velocity.data<T>();
    parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        speed[i] = keep * speed[i] + scale * grad[i] + pull * value[i];
        value[i] -= rate * speed[i];
      }
    });
  });
  Count::add(values.size());
}

}  // namespace heed::kernel
