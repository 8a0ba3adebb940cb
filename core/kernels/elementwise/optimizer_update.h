// One step of AdamW, SGD, Lion or schedule-free AdamW over the flat arena of all parameters.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Constants of Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).
struct AdamWConstants {
  double beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;       ///< weight decay
  bool decoupled = true;  ///< AdamW: value -= rate decay value; else Adam: adds decay value to the gradient
  double clip_value = 0;  ///< each element of the gradient is cut to +-clip_value first; 0: not cut
  double clip = 0;        ///< largest norm of the whole gradient; 0: not clipped
};

/// Writes the learning rate, the number of steps before this one, the momentum of a step and the share of
/// ScheduleFree's average into `state`, f64 [5]: see AdamW. Its sum of squares stays.
struct BeginOptimizerStep {
  template <Isa>
  static void cpu(const Tensor& state, double rate, int64_t steps_done, double momentum, double share);
  static void cuda(const Tensor& state, double rate, int64_t steps_done, double momentum, double share);
};

/// AdamWUpdate of every element of values, gradient and the moments first and second: f32 or f64 [n],
/// contiguous. state is f64 [5] on the device: learning rate, number of steps before this one, sum of squares
/// of the whole gradient, beta1, and the share of ScheduleFree. Writes values, first and second; writes
/// nothing where that sum is not finite.
struct AdamW {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                  const Tensor& state, const AdamWConstants& constants);
  static void cuda(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                   const Tensor& state, const AdamWConstants& constants);
};

/// SgdUpdate of every element of values, gradient and velocity: f32 or f64 [n], contiguous. state is that of
/// AdamW, with the momentum in place of beta1. Writes values and velocity; writes nothing where the sum of
/// squares is not finite. clip_value and clip are those of AdamWConstants.
struct Sgd {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
                  double decay, double clip_value, double clip);
  static void cuda(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
                   double decay, double clip_value, double clip);
};

/// LionUpdate of every element of values, gradient and the mean of gradients: f32 or f64 [n], contiguous.
/// state is that of AdamW; of the constants epsilon and decoupled are not read. Writes values and mean;
/// writes nothing where the sum of squares is not finite.
struct Lion {
  template <Isa>
  static void cpu(const Tensor& values, const Tensor& gradient, const Tensor& mean, const Tensor& state,
                  const AdamWConstants& constants);
  static void cuda(const Tensor& values, const Tensor& gradient, const Tensor& mean, const Tensor& state,
                   const AdamWConstants& constants);
};

/// The four sequences of schedule-free AdamW (Defazio et al. 2024, arXiv 2405.15682): f32 or f64 [n],
/// contiguous.
struct ScheduleFreeTensors {
  Tensor values;   ///< y: where the gradient is taken
  Tensor base;     ///< z: the steps of AdamW without momentum
  Tensor average;  ///< x: the weighted mean of all z, which is evaluated
  Tensor second;   ///< v: the running mean of squared gradients
};

/// ScheduleFreeUpdate of every element of the sequences and of gradient [n]. state is that of AdamW;
/// constants.decoupled is not read. Writes all four sequences; writes nothing where the sum of squares is not
/// finite.
struct ScheduleFree {
  template <Isa>
  static void cpu(const ScheduleFreeTensors& sequences, const Tensor& gradient, const Tensor& state,
                  const AdamWConstants& constants);
  static void cuda(const ScheduleFreeTensors& sequences, const Tensor& gradient, const Tensor& state,
                   const AdamWConstants& constants);
};

}  // namespace heed::kernel
