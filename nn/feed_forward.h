// FeedForward: the position-wise network of a transformer block.
#pragma once

#include "heed/nn/linear.h"

namespace heed {

/// The nonlinearity of a feed-forward network; gelu_tanh is GELU's tanh approximation.
enum class Activation { relu, gelu, gelu_tanh, silu };

/// Applies an activation elementwise.
Tensor activate(Activation activation, const Tensor& x);

/// down(dropout(activation(up(x)))): [..., width] -> [..., hidden] -> [..., width].
class FeedForward final : public Module {
 public:
  /// Options besides the two widths; `dropout` is on the hidden units.
  struct Options {
    Activation activation = Activation::relu;  ///< between the two layers
    double dropout = 0;                        ///< on hidden units, in training
    bool bias = true;                          ///< both layers add a bias
    Init init = Init::xavier;                  ///< initialisation of both weights
    double out_gain = 1;                       ///< multiplies the second layer's initial weights
  };
  /// `width` in and out, `hidden` units between.
  FeedForward(int64_t width, int64_t hidden, const Options& options, Rng& rng)
      : up(width, hidden, rng, {.bias = options.bias, .init = options.init}),
        down(hidden, width, rng, {.bias = options.bias, .init = options.init, .gain = options.out_gain}),
        options_(options) {}
  /// `rng` draws the dropout; null when evaluating.
  Tensor operator()(const Tensor& x, Rng* rng) const {
    const ModuleScope within(this);
    if (options_.activation != Activation::gelu_tanh)
      return down(dropout(activate(options_.activation, up(x)), options_.dropout, rng));
    if (options_.dropout == 0 || rng == nullptr)
      return feed_forward(x, up.weight, up.bias, down.weight, down.bias);
    return down(dropout(linear_gelu_tanh(x, up.weight, up.bias), options_.dropout, rng));
  }
  void fields(Fields& f) override {
    f("up", up);
    f("down", down);
  }

  Linear up;    ///< [hidden, width]
  Linear down;  ///< [width, hidden]

 private:
  Options options_;
};

inline Tensor activate(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
    case Activation::relu:
      break;
  }
  return relu(x);
}

}  // namespace heed
