// FeedForward: the position-wise network of a transformer block.
#pragma once

#include "heed/nn/linear.h"

namespace heed {

/// The nonlinearity of a feed-forward network; gelu_tanh is GELU's tanh approximation. swiglu and geglu are
/// silu and gelu of a gate that multiplies the hidden units (Shazeer 2020, arXiv 2002.05202).
enum class Activation { relu, gelu, gelu_tanh, silu, swiglu, geglu };

/// True for swiglu and geglu: the feed-forward network has a third layer, its gate.
inline bool is_gated(Activation activation) {
  return activation == Activation::swiglu || activation == Activation::geglu;
}
/// Applies an activation elementwise, then dropout, in one pass; a gated one to the gate, without the
/// product.
Tensor activate(Activation activation, const Tensor& x, double dropout = 0, Rng* rng = nullptr,
                const PaddedPlaces& places = {});

/// down(dropout(activation(up(x)))): [..., width] -> [..., hidden] -> [..., width]. With a gated activation
/// down(dropout(activation(gate(x)) up(x))), which has half as many weights again.
class FeedForward final : public Module {
 public:
  /// Options besides the two widths; `dropout` is on the hidden units.
  struct Options {
    Activation activation = Activation::relu;  ///< activation of the hidden units
    double dropout = 0;                        ///< on hidden units, in training
    bool bias = true;                          ///< all layers add a bias
    Init init = Init::xavier;                  ///< initialisation of all weights
    double out_gain = 1;                       ///< multiplies the initial weights of `down`
  };
  /// `width` in and out, `hidden` units between. Fails for widths below 1 and a dropout outside of [0, 1).
  FeedForward(int64_t width, int64_t hidden, const Options& options, Rng& rng)
      : up(width, hidden, rng, {.bias = options.bias, .init = options.init}),
        down(hidden, width, rng, {.bias = options.bias, .init = options.init, .gain = options.out_gain}),
        gate(is_gated(options.activation)
                 ? Linear(width, hidden, rng, {.bias = options.bias, .init = options.init})
                 : Linear()),
        options_(options) {
    legal_dropout("FeedForward: dropout", options.dropout);
  }
  /// `rng` draws the dropout; null when evaluating. `places` are those of packed sequences x [1, N, width].
  Tensor operator()(const Tensor& x, Rng* rng, const PaddedPlaces& places = {}) const {
    const ModuleScope within(this);
    if (is_gated(options_.activation)) {
      const Tensor units = activate(options_.activation, gate(x)) * up(x);
      return down(dropout(units, options_.dropout, rng, places));
    }
    const bool drops = options_.dropout > 0 && rng != nullptr;
    if (options_.activation == Activation::gelu_tanh && !drops)
      return feed_forward(x, up.weight, up.bias, down.weight, down.bias);
    return down(activate(options_.activation, up(x), options_.dropout, rng, places));
  }
  void fields(Fields& f) override {
    f("up", up);
    f("down", down);
    if (is_gated(options_.activation)) f("gate", gate);
  }

  Linear up;    ///< [hidden, width]
  Linear down;  ///< [width, hidden]
  Linear gate;  ///< [hidden, width] with a gated activation; otherwise without tensors

 private:
  Options options_;
};

inline Tensor activate(Activation activation, const Tensor& x, double dropout, Rng* rng,
                       const PaddedPlaces& places) {
  switch (activation) {
    case Activation::gelu:
    case Activation::geglu:
      return gelu_dropout(x, dropout, rng, places);
    case Activation::gelu_tanh:
      return gelu_tanh_dropout(x, dropout, rng, places);
    case Activation::silu:
    case Activation::swiglu:
      return silu_dropout(x, dropout, rng, places);
    case Activation::relu:
      break;
  }
  return relu_dropout(x, dropout, rng, places);
}

}  // namespace heed
