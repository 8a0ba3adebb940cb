// An attention call on the CPU.
#pragma once

#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/attention_dropout.h"
#include "heed/core/kernels/attention/attention_tile.h"

namespace heed::kernel {

/// Extents, score settings and dropout of a call.
template <class T>
struct Call : AttentionScores<T> {
  DropoutParams dropout;

  Call(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params)
      : AttentionScores<T>(q, k, v, params) {
    if (this->dropped) dropout = DropoutParams::of(params.dropout, params.draw);
  }
  /// True for heads so short that the hardware prefetcher cannot learn their layout.
  bool short_heads() const { return this->Tq <= 2 * tile && this->Tk <= 2 * tile; }
  /// Number of visible pairs of all heads.
  int64_t pairs() const {
    int64_t total = 0;
    for (int64_t b = 0; b < this->B; ++b) {
      for (int64_t i = 0; this->causal && i < this->Tq; ++i) total += this->keys_before(b, i + 1);
      if (!this->causal) total += this->Tq * this->keys_of(b);
    }
    return total * this->H;
  }
};

}  // namespace heed::kernel
