// Convolutional encoder layers over sequences: ConvS2S's gated one and ByteNet's dilated one.
#pragma once

#include "heed/nn/linear.h"
#include "heed/nn/norm.h"

namespace heed {

/// The positions of a convolution's taps relative to an output position.
struct Taps {
  int64_t count = 3;     ///< k, number of positions that an output depends on; odd unless causal
  int64_t dilation = 1;  ///< distance between neighbouring taps
  bool causal = false;   ///< taps at the position and before it, instead of around it
};

/// A convolution along the sequence, of as many positions as its input: x [B, T, in] -> [B, T, out].
/// Positions beyond the ends are zeros.
class Convolution final : public Module {
 public:
  Convolution() = default;  ///< without tensors; must not be called
  /// Weight [out, k in], the first tap first, drawn from `rng`; the bias is 0. Fails for less than one tap, a
  /// dilation below 1, and an even number of taps around a position.
  Convolution(int64_t in, int64_t out, const Taps& taps, Rng& rng, const LinearOptions& options = {});
  /// x [B, T, in] -> [B, T, out].
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;

  Tensor weight;  ///< [out, k in]
  Tensor bias;    ///< [out], or empty

 private:
  Taps taps_;
};

/// A layer of ConvS2S's encoder: y = (x + a * sigmoid(b)) sqrt(1/2), where [a; b] is a convolution of x to
/// twice the width (Gehring et al. 2017, arXiv 1705.03122, sections 3.2 and 3.4). O(k n d^2) operations.
class GatedConvolution final : public Module {
 public:
  /// Draws the weights from `rng`; weight normalisation is not part of it.
  GatedConvolution(int64_t width, const Taps& taps, Rng& rng);
  /// x [B, T, width] -> [B, T, width]. Positions from `lengths` (i32 [B], or empty) on are padding: zeros in
  /// the input and in the output.
  Tensor operator()(const Tensor& x, const Tensor& lengths) const;
  void fields(Fields& f) override;

  Convolution convolution;  ///< to [a; b]
};

/// A residual block of ByteNet, with ReLU: layer norm, ReLU, d -> d/2; layer norm, ReLU, a dilated
/// convolution of width d/2; layer norm, ReLU, d/2 -> d; plus x (Kalchbrenner et al. 2016, arXiv 1610.10099,
/// section 3.5 and figure 3). With dilations 1, r, r^2, ... an output of L layers depends on about r^L
/// positions.
class DilatedConvolution final : public Module {
 public:
  /// Draws the weights from `rng`. Fails for an odd width.
  DilatedConvolution(int64_t width, const Taps& taps, Rng& rng);
  /// x [B, T, width] -> [B, T, width]. Positions from `lengths` (i32 [B], or empty) on are padding: zeros in
  /// the input and in the output.
  Tensor operator()(const Tensor& x, const Tensor& lengths) const;
  void fields(Fields& f) override;

  LayerNorm first;          ///< before `down`
  LayerNorm second;         ///< before `convolution`
  LayerNorm third;          ///< before `up`
  Linear down;              ///< [width / 2, width]
  Convolution convolution;  ///< dilated convolution of width / 2 channels
  Linear up;                ///< [width, width / 2]
};

}  // namespace heed
