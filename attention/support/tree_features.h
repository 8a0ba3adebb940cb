// TreeFeatures: feature maps whose products estimate the attention mass of tree nodes, for casinoformer.
#pragma once

#include <optional>

#include "heed/autograd/ops.h"

namespace heed {

/// Estimates of a node's mass. `align`, `lookahead` and `contrast` need no features; `uniform` and `edh` do
/// not depend on keys. The last four are ours, the others the paper's.
enum class TreeMass {
  uniform,
  edh,
  align,
  posalign,
  rff,
  favor,
  favor_relu,
  lookahead,
  contrast,
  gap,
  variance
};
/// Whether the mass comes from moments of scores (core/kernels/content/tree_moments.h).
inline bool is_of_moments(TreeMass mass) { return mass >= TreeMass::lookahead; }

/// The feature map phi. The choice of buds gets no gradient, so nothing is recorded.
///   posalign    [x_+, (-x)_+]
///   rff         d^(-1/2) exp(min(|x'|, 10)^2 / 2) [sin W x', cos W x']
///   favor       (2 d)^(-1/2) exp(-|x'|^2 / 2) [exp(W x'), exp(-W x')]
///   favor_relu  (2 d)^(-1/2) [(W x')_+, (-W x')_+]              with x' = x d^(-1/4)
///   gap, variance  [x, x^2], of keys only
class TreeFeatures {
 public:
  /// Draws W [heads, d, d] where `mass` needs one.
  TreeFeatures(TreeMass mass, int64_t heads, int64_t d, Rng& rng);
  /// From now on uses a separate W for each position, drawn from this seed, instead of `projection`.
  void redraw(uint64_t seed) { seed_ = seed; }

  /// phi(x) [B, H, T, 2 d] of x [B, H, T, d], whose first row is at position `first`; empty when the mass
  /// needs no features.
  Tensor operator()(const Tensor& x, int64_t first) const;

  /// W [H, d, d]: orthogonal rows with the lengths of normal vectors, or sqrt(d) for favor_relu. Empty when
  /// nothing is random.
  Tensor projection;

 private:
  Tensor drawn(int64_t heads, int64_t d, Rng& rng) const;
  Tensor of(const Tensor& x, const Tensor& w) const;

  TreeMass mass_;
  std::optional<uint64_t> seed_;
};

}  // namespace heed
