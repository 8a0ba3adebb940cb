// LayerNorm and RMSNorm.
#pragma once

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"
#include "heed/nn/legal_values.h"
#include "heed/nn/module.h"

namespace heed {

/// Returns the epsilon of a norm. Fails unless it is at least 0. `norm` begins the error: "LayerNorm".
inline double legal_epsilon(const char* norm, double epsilon) {
  if (!(epsilon >= 0)) fail(norm, ": epsilon = ", epsilon, ". It must be at least 0, such as 1e-5.");
  return epsilon;
}

/// Normalises the last axis: [..., width] -> [..., width]. Ba et al. 2016, arXiv 1607.06450.
class LayerNorm final : public Module {
 public:
  /// Options of a norm.
  struct Options {
    bool bias = true;       ///< add a bias
    double epsilon = 1e-5;  ///< keeps the divisor above 0
    /// The divisor: sqrt(variance + epsilon), or sample deviation + epsilon; or RMS norm, without a mean.
    kernel::NormScale scale = kernel::NormScale::variance;
  };
  /// Gain 1 and bias 0, [width]. Fails for a width below 1 and a negative epsilon.
  LayerNorm(int64_t width, const Options& options)
      : gain(constant_parameter(Shape{at_least_one("LayerNorm: width", width)}, 1)),
        bias(options.bias ? constant_parameter(Shape{width}, 0) : Tensor()),
        options_(options) {
    legal_epsilon("LayerNorm", options.epsilon);
  }
  /// x [..., width] -> [..., width].
  Tensor operator()(const Tensor& x) const {
    const ModuleScope within(this);
    return layer_norm(x, gain, bias, options_.epsilon, options_.scale);
  }
  /// x + dropout(branch) and its norm in one kernel: x and branch [..., width], see add_dropout_norm().
  NormalisedSum of_sum(const Tensor& x, const Tensor& branch, double dropout, Rng* rng,
                       const PaddedPlaces& places) const {
    const ModuleScope within(this);
    return add_dropout_norm(x, branch, dropout, rng, places, gain, bias, options_.epsilon, options_.scale);
  }
  void fields(Fields& f) override {
    f("gain", gain);
    f("bias", bias);
  }

  Tensor gain;  ///< [width], starts at 1
  Tensor bias;  ///< [width], starts at 0; empty without a bias

 private:
  Options options_;
};

/// RMS norm of the last axis: gain x / sqrt(mean of x^2 + epsilon), [..., width] -> [..., width]. It has no
/// mean and no bias. Zhang and Sennrich 2019, arXiv 1910.07467.
class RMSNorm final : public Module {
 public:
  /// Gain 1, [width]. The default epsilon is that of LLaMA 2 and 3. Fails for a width below 1 and a negative
  /// epsilon.
  explicit RMSNorm(int64_t width, double epsilon = 1e-5)
      : gain(constant_parameter(Shape{at_least_one("RMSNorm: width", width)}, 1)),
        epsilon_(legal_epsilon("RMSNorm", epsilon)) {}
  /// x [..., width] -> [..., width].
  Tensor operator()(const Tensor& x) const {
    const ModuleScope within(this);
    return rms_norm(x, gain, epsilon_);
  }
  void fields(Fields& f) override { f("gain", gain); }

  Tensor gain;  ///< [width], starts at 1

 private:
  double epsilon_;
};

}  // namespace heed
