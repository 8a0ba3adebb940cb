// An attention layer on random input, for benchmarks.
#pragma once

#include <memory>
#include <string>

#include "heed/attention/base/multi_head_attention.h"

namespace heed::bench {

/// An attention on random heads [batch, 4, N, D] without its projections; an attention that is no
/// MultiHeadAttention runs with them, on [batch, N, 4 * D].
class AttentionLayer {
 public:
  /// The attention and its sizes.
  struct Options {
    std::string spec;      ///< spec of the attention
    bool causal = false;   ///< whether the mask is causal
    int64_t width = 32;    ///< D, width of a head
    int64_t length = 512;  ///< N
    int64_t batch = 1;
    bool training = false;  ///< whether stochastic attentions sample and dropout is on
    double dropout = 0;     ///< dropout rate of the attention weights
  };
  explicit AttentionLayer(const Options& options);

  Tensor forward();
  /// One step, forward and backward; gradients are not accumulated over steps.
  void step();

 private:
  Mask mask_;
  Rng rng_;
  bool training_;
  std::unique_ptr<Attention> layer_;
  MultiHeadAttention* multi_head_;
  Tensor input_;             // [batch, N, 4 * D]: gates of the attention read it
  Tensor q_, k_, v_, dout_;  // heads, and the gradient of the output
};

}  // namespace heed::bench
