// Scores of a hidden layer for each pair, without keeping what the layer makes of a pair.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// score_ij = sum over a of units_a tanh(left_ia + right_aj). left [B, H, Tq, A], right [B, H, A, Tk], units
/// [H, A], score [B, H, Tq, Tk]; all contiguous. Bahdanau et al. 2015, arXiv 1409.0473, appendix A.1.2.
struct AdditiveScore {
  template <Isa>
  static void cpu(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score);
  static void cuda(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score);
};

/// What additive scores are made of, or the gradients of it. Contiguous.
struct AdditiveInputs {
  Tensor left;   ///< [B, H, Tq, A]
  Tensor right;  ///< [B, H, A, Tk]
  Tensor units;  ///< [H, A]; its gradient [B, H, A], one part for each sequence
};

/// Writes dx from dscore [B, H, Tq, Tk]; it computes each tanh again.
struct AdditiveScoreBack {
  template <Isa>
  static void cpu(const AdditiveInputs& x, const Tensor& dscore, const AdditiveInputs& dx);
  static void cuda(const AdditiveInputs& x, const Tensor& dscore, const AdditiveInputs& dx);
};

}  // namespace heed::kernel
