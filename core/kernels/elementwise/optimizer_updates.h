// The updates of AdamW and SGD for one element, for the CPU and the device.
#pragma once

#include <cmath>

#include "heed/core/host_device.h"
#include "heed/core/kernels/elementwise/adamw.h"

namespace heed::kernel {

/// The `state` tensor [4] of AdamW and Sgd.
struct OptimizerState {
  double learning_rate, steps_done;
  double gradient_square_sum;  ///< over all parameters
  double beta1_or_momentum;

  HEED_BOTH bool is_finite() const { return gradient_square_sum - gradient_square_sum == 0; }
  /// Factor of the gradient that reduces its norm to at most `max_norm`; 1 where max_norm is 0.
  HEED_BOTH double clip_scale(double max_norm) const {
    const double norm = std::sqrt(gradient_square_sum);
    return max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
  }
};

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2 and
/// value -= learning_rate (decay value + m_hat / (sqrt(v_hat) + epsilon)), where m_hat = m / (1 - beta1^t),
/// v_hat = v / (1 - beta2^t) and g is the clipped gradient. Adam adds decay value to g instead.
template <class T>
struct AdamWUpdate {
  T clip_scale, beta1, beta2, one_minus_beta1, one_minus_beta2;
  T step_size;                 ///< learning_rate / (1 - beta1^t)
  T second_moment_correction;  ///< 1 / sqrt(1 - beta2^t)
  T epsilon, decoupled_decay, gradient_decay;

  AdamWUpdate() = default;
  HEED_BOTH AdamWUpdate(const OptimizerState& state, const AdamWConstants& constants) {
    const double t = state.steps_done + 1, beta1_f64 = state.beta1_or_momentum;
    clip_scale = static_cast<T>(state.clip_scale(constants.clip));
    beta1 = static_cast<T>(beta1_f64);
    beta2 = static_cast<T>(constants.beta2);
    one_minus_beta1 = static_cast<T>(1 - beta1_f64);
    one_minus_beta2 = static_cast<T>(1 - constants.beta2);
    step_size = static_cast<T>(state.learning_rate / (1 - std::pow(beta1_f64, t)));
    second_moment_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(constants.beta2, t)));
    epsilon = static_cast<T>(constants.epsilon);
    decoupled_decay = static_cast<T>(constants.decoupled ? state.learning_rate * constants.decay : 0);
    gradient_decay = static_cast<T>(constants.decoupled ? 0 : constants.decay);
  }
  HEED_BOTH void operator()(T& value, T gradient, T& m, T& v) const {
    const T g = clip_scale * gradient + gradient_decay * value;
    m = beta1 * m + one_minus_beta1 * g;
    v = beta2 * v + one_minus_beta2 * g * g;
    value =
        value - decoupled_decay * value - step_size * m / (std::sqrt(v) * second_moment_correction + epsilon);
  }
};

/// velocity = momentum velocity + g + decay value, value -= learning_rate velocity, where g is the clipped
/// gradient.
template <class T>
struct SgdUpdate {
  T learning_rate, clip_scale, momentum, decay;

  HEED_BOTH SgdUpdate(const OptimizerState& state, double weight_decay, double max_norm)
      : learning_rate(static_cast<T>(state.learning_rate)),
        clip_scale(static_cast<T>(state.clip_scale(max_norm))),
        momentum(static_cast<T>(state.beta1_or_momentum)),
        decay(static_cast<T>(weight_decay)) {}
  HEED_BOTH void operator()(T& value, T gradient, T& velocity) const {
    velocity = momentum * velocity + clip_scale * gradient + decay * value;
    value -= learning_rate * velocity;
  }
};

}  // namespace heed::kernel
