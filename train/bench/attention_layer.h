// One attention layer for the benchmarks.
#pragma once

#include <memory>
#include <string>

#include "heed/attention/base/multi_head_attention.h"

namespace heed::bench {

/// The attention alone on random heads [batch, 4, N, D], or the whole layer where it has no such form.
class AttentionLayer {
 public:
  /// What is timed.
  struct Options {
    std::string spec;     ///< attention and options
    bool causal = false;  ///< with the causal mask
    int64_t width = 32;   ///< D
    int64_t length = 512;
    int64_t batch = 1;
    bool training = false;  ///< stochastic attentions sample, and dropout is on
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
  Tensor input_;  // [batch, N, model], the input of gates
  Tensor q_, k_, v_, slope_;
};

}  // namespace heed::bench
