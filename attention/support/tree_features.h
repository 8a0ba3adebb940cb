// Features whose products say how much a tree of keys holds for a query: what casinoformer's buds are drawn
// by.
#pragma once

#include <optional>

#include "autograd/ops.h"

namespace heed {

/// Masses of buds. `align` needs no features; `uniform` and `edh` look at no key.
enum class TreeMass { uniform, edh, align, posalign, rff, favor, favor_relu };

/// phi, as it was drawn. Bud sets are constants to a gradient, so nothing here is recorded.
///   posalign    [x_+, (-x)_+]
///   rff         d^(-1/2) exp(min(|x'|, 10)^2 / 2) [sin W x', cos W x']
///   favor       (2 d)^(-1/2) exp(-|x'|^2 / 2) [exp(W x'), exp(-W x')]
///   favor_relu  (2 d)^(-1/2) [(W x')_+, (-W x')_+]              with x' = x d^(-1/4)
class TreeFeatures {
 public:
  TreeFeatures(TreeMass mass, int64_t heads, int64_t d, Rng& rng);
  /// Draws another W at each position, from this seed, instead of using `projection`.
  void redraw(uint64_t seed) { seed_ = seed; }

  /// Of x [B, H, T, d] whose first row is at position `first`: [B, H, T, 2 d]; empty where the mass needs
  /// none.
  Tensor operator()(const Tensor& x, int64_t first) const;

  /// W [H, d, d]: orthogonal rows, as long as normal vectors of d numbers; sqrt(d) long for favor_relu. Empty
  /// where nothing is random.
  Tensor projection;

 private:
  Tensor drawn(int64_t heads, int64_t d, Rng& rng) const;
  Tensor of(const Tensor& x, const Tensor& w) const;

  TreeMass mass_;
  std::optional<uint64_t> seed_;
};

}  // namespace heed
