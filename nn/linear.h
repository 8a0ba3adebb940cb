// Linear: y = x W^T + b.
#pragma once

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/module.h"

namespace heed {

/// What a Linear is made with besides its two widths.
struct LinearOptions {
  bool bias = true;
  Init init = Init::xavier;
  double gain = 1;  ///< multiplies the deviation of the initial weights
};

/// x [..., in] -> [..., out]. The bias starts at zero.
class Linear final : public Module {
 public:
  Linear() = default;  ///< has nothing, and is not called
  Linear(int64_t in, int64_t out, Rng& rng, const LinearOptions& options = {})
      : weight(heed::weight(out, in, options.init, rng, options.gain)),
        bias(options.bias ? constant_parameter(Shape{out}, 0) : Tensor()) {}
  Tensor operator()(const Tensor& x) const {
    const Within within(this);
    return linear(x, weight, bias);
  }
  void fields(Fields& f) override {
    f("weight", weight);
    f("bias", bias);
  }

  Tensor weight;  ///< [out, in]
  Tensor bias;    ///< [out], or empty
};

}  // namespace heed
