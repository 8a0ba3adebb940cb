// The update rules of the optimizers for one element, for the CPU and the device.
#pragma once

#include <cmath>

#include "heed/core/host_device.h"
#include "heed/core/kernels/elementwise/gradient_clipping.h"
#include "heed/core/kernels/elementwise/optimizer_update.h"

namespace heed::kernel {

/// The `state` tensor [5] of AdamW and the other rules.
struct OptimizerState {
  double learning_rate;
  double steps_done;  ///< number of steps before this one
  GradientNorm gradient_norm;
  double beta1_or_momentum;
  double average_share;  ///< weight of this step's z in the average x of ScheduleFree

  static OptimizerState* of(const Tensor& state) {
    return reinterpret_cast<OptimizerState*>(state.data<double>());
  }
  /// Writes what BeginOptimizerStep writes.
  HEED_BOTH void begin(double rate, int64_t steps, double momentum, double share) {
    average_share = share;
    learning_rate = rate;
    steps_done = static_cast<double>(steps);
    beta1_or_momentum = momentum;
  }
};

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2 and
/// value -= learning_rate (decay value + m_hat / (sqrt(v_hat) + epsilon)), where m_hat = m / (1 - beta1^t),
/// v_hat = v / (1 - beta2^t) and g is the clipped gradient. Adam adds decay value to g instead.
template <class T>
struct AdamWUpdate {
  CutElement<T> cut;
  T clip_scale, beta1, beta2, one_minus_beta1, one_minus_beta2;
  T step_size;                 ///< learning_rate / (1 - beta1^t)
  T second_moment_correction;  ///< 1 / sqrt(1 - beta2^t)
  T epsilon, decoupled_decay, gradient_decay;

  AdamWUpdate() = default;
  HEED_BOTH AdamWUpdate(const OptimizerState& state, const AdamWConstants& constants) {
    const double t = state.steps_done + 1, beta1_f64 = state.beta1_or_momentum;
    cut = CutElement<T>::to(constants.clip_value);
    clip_scale = static_cast<T>(state.gradient_norm.clip_scale(constants.clip));
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
    const T g = clip_scale * cut(gradient) + gradient_decay * value;
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
  CutElement<T> cut;
  T learning_rate, clip_scale, momentum, decay;

  HEED_BOTH SgdUpdate(const OptimizerState& state, double weight_decay, double clip_value, double max_norm)
      : cut(CutElement<T>::to(clip_value)),
        learning_rate(static_cast<T>(state.learning_rate)),
        clip_scale(static_cast<T>(state.gradient_norm.clip_scale(max_norm))),
        momentum(static_cast<T>(state.beta1_or_momentum)),
        decay(static_cast<T>(weight_decay)) {}
  HEED_BOTH void operator()(T& value, T gradient, T& velocity) const {
    velocity = momentum * velocity + clip_scale * cut(gradient) + decay * value;
    value -= learning_rate * velocity;
  }
};

/// value -= learning_rate (decay value + sign(beta1 m + (1 - beta1) g)), then m = beta2 m + (1 - beta2) g,
/// where g is the clipped gradient: Lion (Chen et al. 2023, arXiv 2302.06675).
template <class T>
struct LionUpdate {
  CutElement<T> cut;
  T learning_rate, clip_scale, beta1, beta2, one_minus_beta1, one_minus_beta2, decay;

  HEED_BOTH LionUpdate(const OptimizerState& state, const AdamWConstants& constants)
      : cut(CutElement<T>::to(constants.clip_value)),
        learning_rate(static_cast<T>(state.learning_rate)),
        clip_scale(static_cast<T>(state.gradient_norm.clip_scale(constants.clip))),
        beta1(static_cast<T>(state.beta1_or_momentum)),
        beta2(static_cast<T>(constants.beta2)),
        one_minus_beta1(static_cast<T>(1 - state.beta1_or_momentum)),
        one_minus_beta2(static_cast<T>(1 - constants.beta2)),
        decay(static_cast<T>(state.learning_rate * constants.decay)) {}
  HEED_BOTH void operator()(T& value, T gradient, T& m) const {
    const T g = clip_scale * cut(gradient), direction = beta1 * m + one_minus_beta1 * g;
    const T sign = direction > 0 ? T(1) : direction < 0 ? T(-1) : T(0);
    m = beta2 * m + one_minus_beta2 * g;
    value = value - decay * value - learning_rate * sign;
  }
};

/// v = beta2 v + (1 - beta2) g^2, z -= learning_rate (decay y + g / (sqrt(v_hat) + epsilon)),
/// x += share (z - x) and y = z + beta1 (x - z), where v_hat = v / (1 - beta2^t) and g is the clipped
/// gradient, taken at y: Defazio et al. 2024, arXiv 2405.15682. A learning rate of 0 leaves y = z = x as they
/// are.
template <class T>
struct ScheduleFreeUpdate {
  CutElement<T> cut;
  T learning_rate, clip_scale, beta1, beta2, one_minus_beta2, second_moment_correction, epsilon, decay, share;

  ScheduleFreeUpdate() = default;
  HEED_BOTH ScheduleFreeUpdate(const OptimizerState& state, const AdamWConstants& constants)
      : cut(CutElement<T>::to(constants.clip_value)),
        learning_rate(static_cast<T>(state.learning_rate)),
        clip_scale(static_cast<T>(state.gradient_norm.clip_scale(constants.clip))),
        beta1(static_cast<T>(state.beta1_or_momentum)),
        beta2(static_cast<T>(constants.beta2)),
        one_minus_beta2(static_cast<T>(1 - constants.beta2)),
        second_moment_correction(
            static_cast<T>(1 / std::sqrt(1 - std::pow(constants.beta2, state.steps_done + 1)))),
        epsilon(static_cast<T>(constants.epsilon)),
        decay(static_cast<T>(state.learning_rate * constants.decay)),
        share(static_cast<T>(state.average_share)) {}
  HEED_BOTH void operator()(T& y, T gradient, T& z, T& x, T& v) const {
    const T g = clip_scale * cut(gradient);
    v = beta2 * v + one_minus_beta2 * g * g;
    z = z - decay * y - learning_rate * g / (std::sqrt(v) * second_moment_correction + epsilon);
    x = x + share * (z - x);
    y = z + beta1 * (x - z);
  }
};

}  // namespace heed::kernel
