// Scores of a hidden layer for each pair, without keeping what the layer makes of a pair.
#pragma once

#include "core/isa.h"
#include "core/tensor.h"

namespace heed::kernel {

/// score_ij = sum over a of units_a tanh(left_ia + right_aj). left [B, H, Tq, A], right [B, H, A, Tk], units
/// [H, A], score [B, H, Tq, Tk]; all contiguous. Bahdanau et al. 2015, arXiv 1409.0473, appendix A.1.2.
struct AdditiveScore {
  template <Isa>
  static void cpu(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score);
  static void cuda(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score);
};

/// Gradients (overwritten) from dscore; each tanh is computed again. dunits is [B, H, A], one part for each
/// sequence.
struct AdditiveScoreBack {
  template <Isa>
  static void cpu(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& dscore,
                  const Tensor& dleft, const Tensor& dright, const Tensor& dunits);
  static void cuda(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& dscore,
                   const Tensor& dleft, const Tensor& dright, const Tensor& dunits);
};

}  // namespace heed::kernel
