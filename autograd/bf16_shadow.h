// The weights of a training step in bf16, rounded by one kernel.
#pragma once

#include "heed/core/scope.h"
#include "heed/core/tensor.h"

namespace heed {

/// While one lives, products of linear layers in this thread that round to bf16 on a GPU read the weights in
/// `values` from a copy in bf16, where each layer would round its own. Nothing may change the weights
/// meanwhile.
class Bf16Shadow : NonCopyable {
 public:
  /// `values`: the parameters of a model in one tensor, Optimizer::values(). Copies nothing on the CPU, for
  /// types other than f32, and unless product_rounding() is bf16.
  explicit Bf16Shadow(const Tensor& values);
  ~Bf16Shadow();

  /// The copy of `weight`, a part of `values`, with its strides; empty where this thread has none.
  static Tensor of(const Tensor& weight);

 private:
  Tensor values_, copy_;
  const Bf16Shadow* outer_;
};

}  // namespace heed
