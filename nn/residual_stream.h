// ResidualStream: the sum of a transformer's residual branches, on its way through the blocks.
#pragma once

#include "heed/nn/attention.h"
#include "heed/nn/norm.h"

namespace heed {

/// The residual stream x [B, T, width], or packed [1, N, width], of a stack of blocks. A branch is added when
/// x is read next: where a norm reads it, one kernel computes dropout, sum and norm.
class ResidualStream {
 public:
  /// Begins with x. `mask` tells where packed rows lie, and context.rng draws the dropout of branches.
  ResidualStream(const Tensor& x, const Mask& mask, const ForwardContext& context)
      : x_(x),
        rng_(context.rng),
        places_(mask.query_packing() ? mask.query_packing()->places : PaddedPlaces{}) {}

  const PaddedPlaces& places() const { return places_; }  ///< places of packed rows; empty where x is padded

  /// x becomes x + dropout(branch); branch has the shape of x.
  void add(const Tensor& branch, double dropout) {
    x_ = x();
    branch_ = branch;
    dropout_ = dropout;
  }
  /// x, with all branches that were added.
  const Tensor& x() {
    if (branch_) x_ = add_dropout(x_, std::exchange(branch_, {}), dropout_, rng_, places_);
    return x_;
  }
  /// x becomes another tensor of its shape.
  void replace(const Tensor& x) {
    x_ = x;
    branch_ = {};
  }
  /// norm(x).
  Tensor normalised(const LayerNorm& norm) {
    if (!branch_) return norm(x_);
    const NormalisedSum both = norm.of_sum(x_, std::exchange(branch_, {}), dropout_, rng_, places_);
    x_ = both.sum;
    return both.normalised;
  }
  /// x becomes norm(x).
  void normalise(const LayerNorm& norm) { x_ = normalised(norm); }

 private:
  Tensor x_, branch_;  // branch_: to be added to x_; empty where none is
  double dropout_ = 0;
  Rng* rng_;
  PaddedPlaces places_;
};

}  // namespace heed
