// Linear: y = x W^T + b.
#pragma once

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"
#include "heed/nn/legal_values.h"
#include "heed/nn/module.h"

namespace heed {

/// Options of a Linear besides its two widths.
struct LinearOptions {
  bool bias = true;          ///< add b [out]
  Init init = Init::xavier;  ///< initialisation of the weights; fan_in and xavier_fan_in: of the biases, too
  double gain = 1;           ///< multiplies the standard deviation of the initial weights
};

/// A linear layer: x [..., in] -> x W^T + b [..., out]. The bias starts at zero, unless `init` draws it.
class Linear final : public Module {
 public:
  Linear() = default;  ///< without tensors; must not be called
  /// Weight [out, in] drawn from `rng`. Fails for a width below 1.
  Linear(int64_t in, int64_t out, Rng& rng, const LinearOptions& options = {})
      : weight(heed::init_weight(at_least_one("Linear: out", out), at_least_one("Linear: in", in),
                                 options.init, rng, options.gain)),
        bias(options.bias ? init_bias(out, in, options.init, rng) : Tensor()) {}
  /// x [..., in] -> [..., out], at any rank from 1.
  Tensor operator()(const Tensor& x) const {
    const ModuleScope within(this);
    return linear(x, weight, bias);
  }
  /// x [..., in] -> [..., out] of the dtype `result`, f32 or bf16, whatever that of x is.
  Tensor operator()(const Tensor& x, DType result) const {
    const ModuleScope within(this);
    return linear(x, weight, bias, result);
  }
  void fields(Fields& f) override {
    f.matrix("weight", weight);
    f("bias", bias);
  }

  Tensor weight;  ///< [out, in]
  Tensor bias;    ///< [out], or empty
};

}  // namespace heed
