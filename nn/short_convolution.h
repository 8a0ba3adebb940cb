// ShortConvolution: a depthwise convolution of a few taps on the input of self-attention.
#pragma once

#include "heed/nn/attention_cache.h"
#include "heed/nn/mask.h"
#include "heed/nn/module.h"

namespace heed {

/// y_t = sum_j w_j x_(t + j - before), each channel by its own k taps: attention compares and reads short
/// runs of tokens in place of single ones. In decoders the last tap is at the token itself, and the others
/// before it (before = k - 1), as in the shift of H3 (Fu et al. 2022, arXiv 2212.14052), in Based (Arora et
/// al. 2024, arXiv 2402.18668) and in Mamba; in encoders before = (k - 1) / 2 rounded down. No nonlinearity
/// follows, as in H3: the projections of attention do. It starts close to the identity: the tap at the token
/// itself is 1, and noise of deviation 0.02 is added to all taps. Weights are those of PyTorch's grouped
/// Conv1d, [width, 1, k].
class ShortConvolution final : public Module {
 public:
  /// The last k - 1 inputs of each sequence between steps of decoding.
  struct Cache final : AttentionCache {
    Tensor inputs;  ///< [B, k - 1, width]; empty before the first step, and always for k = 1
    void fields(Fields& f) override { f("inputs", inputs); }
  };

  /// `taps` k, at least 1. Draws the noise from `rng`.
  ShortConvolution(int64_t width, int64_t taps, bool causal, Rng& rng);
  /// x [B, T, width] -> [B, T, width]. Padding of `mask` counts as zeros, and never reaches a real output.
  /// With a cache, from new_cache(), x continues the cached sequence.
  Tensor operator()(const Tensor& x, const Mask& mask, AttentionCache* cache = nullptr) const;
  /// An empty cache; null unless causal: other taps read later tokens.
  std::unique_ptr<AttentionCache> new_cache() const;
  void fields(Fields& f) override { f("weight", weight); }

  Tensor weight;  ///< [width, k]

 private:
  bool causal_;
};

}  // namespace heed
