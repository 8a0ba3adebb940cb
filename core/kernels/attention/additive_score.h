// Additive scores: a hidden layer for each pair of query and key, whose activations are not stored.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// score_ij = sum over hidden units a of units_a tanh(left_ia + right_aj), where left are projected queries
/// and right projected keys. left [B, H, Tq, A], right [B, H, A, Tk], units [H, A], score [B, H, Tq, Tk]; all
/// contiguous. Bahdanau et al. 2015, arXiv 1409.0473, appendix A.1.2.
struct AdditiveScore {
  template <Isa>
  static void cpu(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score);
  static void cuda(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score);
};

/// Inputs of additive scores, or their gradients. Contiguous.
struct AdditiveInputs {
  Tensor left;   ///< [B, H, Tq, A]
  Tensor right;  ///< [B, H, A, Tk]
  Tensor units;  ///< [H, A]; its gradient is [B, H, A], for each batch row apart
};

/// Gradients dx of the inputs from dscore [B, H, Tq, Tk]; computes each tanh again.
struct AdditiveScoreBack {
  template <Isa>
  static void cpu(const AdditiveInputs& x, const Tensor& dscore, const AdditiveInputs& dx);
  static void cuda(const AdditiveInputs& x, const Tensor& dscore, const AdditiveInputs& dx);
};

/// Extents of a call.
struct AdditiveExtents {
  int64_t num_heads, heads, queries, units, keys;  ///< B H, H, Tq, A, Tk
  AdditiveExtents(const Tensor& left, const Tensor& right)
      : num_heads(left.extent(0) * left.extent(1)),
        heads(left.extent(1)),
        queries(left.extent(2)),
        units(left.extent(3)),
        keys(right.extent(3)) {}
};

}  // namespace heed::kernel
