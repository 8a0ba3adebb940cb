// The elementwise rules of Muon, for the CPU and the device.
#pragma once

#include <cmath>

#include "heed/core/kernels/elementwise/muon_update.h"
#include "heed/core/kernels/elementwise/optimizer_update_rules.h"

namespace heed::kernel {

/// What MuonDirection computes of one element.
template <class T>
struct MuonDirectionRule {
  CutElement<T> cut;
  T clip_scale, momentum, one_minus_momentum;

  HEED_BOTH MuonDirectionRule(const OptimizerState& state, double clip_value, double clip)
      : cut(CutElement<T>::to(clip_value)),
        clip_scale(static_cast<T>(state.gradient_norm.clip_scale(clip))),
        momentum(static_cast<T>(state.beta1_or_momentum)),
        one_minus_momentum(static_cast<T>(1 - state.beta1_or_momentum)) {}
  /// The direction; `mean` becomes the new one.
  HEED_BOTH T operator()(T gradient, T& mean) const {
    const T g = clip_scale * cut(gradient);
    mean = momentum * mean + one_minus_momentum * g;
    return momentum * mean + one_minus_momentum * g;
  }
};

/// What MuonStep computes of one element.
template <class T>
struct MuonStepRule {
  T step_size, decay;

  HEED_BOTH MuonStepRule(const OptimizerState& state, double weight_decay, double scale)
      : step_size(static_cast<T>(state.learning_rate * scale)),
        decay(static_cast<T>(state.learning_rate * weight_decay)) {}
  HEED_BOTH void operator()(T& value, T direction) const {
    value = value - decay * value - step_size * direction;
  }
};

/// The factor of a row whose squares have this sum.
HEED_BOTH inline double inverse_norm(double squares, double smallest) {
  const double norm = std::sqrt(squares);
  return 1 / (norm > smallest ? norm : smallest);
}

}  // namespace heed::kernel
