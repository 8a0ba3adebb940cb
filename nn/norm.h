// LayerNorm and RMSNorm.
#pragma once

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"
#include "heed/nn/module.h"

namespace heed {

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
  /// Gain 1 and bias 0, [width].
  LayerNorm(int64_t width, const Options& options)
      : gain(constant_parameter(Shape{width}, 1)),
        bias(options.bias ? constant_parameter(Shape{width}, 0) : Tensor()),
        options_(options) {}
  /// x [..., width] -> [..., width].
  Tensor operator()(const Tensor& x) const {
    const ModuleScope within(this);
    return layer_norm(x, gain, bias, options_.epsilon, options_.scale);
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
  /// Gain 1, [width]. The default epsilon is that of LLaMA 2 and 3.
  explicit RMSNorm(int64_t width, double epsilon = 1e-5)
      : gain(constant_parameter(Shape{width}, 1)), epsilon_(epsilon) {}
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
