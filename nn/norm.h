// LayerNorm. Ba et al. 2016, arXiv 1607.06450.
#pragma once

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"
#include "heed/nn/module.h"

namespace heed {

/// Normalises the last axis: [..., width] -> [..., width].
class LayerNorm final : public Module {
 public:
  /// Whether to add a bias; epsilon of the divisor, and what the divisor is.
  struct Options {
    bool bias = true;
    double epsilon = 1e-5;
    kernel::NormScale scale = kernel::NormScale::variance;
  };
  LayerNorm(int64_t width, const Options& options)
      : gain(constant_parameter(Shape{width}, 1)),
        bias(options.bias ? constant_parameter(Shape{width}, 0) : Tensor()),
        options_(options) {}
  Tensor operator()(const Tensor& x) const {
    const ModuleScope within(this);
    return layer_norm(x, gain, bias, options_.epsilon, options_.scale);
  }
  void fields(Fields& f) override {
    f("gain", gain);
    f("bias", bias);
  }

  Tensor gain, bias;  ///< [width]; the bias may be empty

 private:
  Options options_;
};

}  // namespace heed
