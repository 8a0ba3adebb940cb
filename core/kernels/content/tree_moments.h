// Buds of a tree split where attention to them as one node loses most, by the moments of the scores below.
#pragma once

#include "heed/core/kernels/content/tree_buds.h"
#include "heed/core/kernels/content/tree_node.h"

namespace heed::kernel {

/// The mass of a bud n, summed over heads h. m and v: mean and variance of the scores scale q . k of the keys
/// below it, v without products of different columns. Z_h: the same head's sum of |n| exp(m + v / 2)
/// (lookahead, contrast: of |n| exp(m)) over one level of the tree, at most moment_nodes nodes, so that heads
/// whose scores are large do not outweigh the others. Of normal scores, |n| exp(m + v / 2) is what exact
/// attention sums, |n| exp(m) what a bud that is not split counts; by Jensen's inequality never more.
enum class MomentMass {
  gap,       ///< |n| (exp(m + v / 2) - exp(m)) / Z_h: the attention that is lost without a split
  variance,  ///< |n| exp(2 m + v) (exp(v) - 1) / Z_h^2: squared errors of the weights that one replaces
  contrast,  ///< (|l| |r| / |n|) (exp(m_l) - exp(m_r))^2 / Z_h^2: what of them a split into l and r mends
  lookahead  ///< (|l| exp(m_l) + |r| exp(m_r) - |n| exp(m)) / Z_h: what a split into l and r finds
};
/// How many nodes of one level Z_h is summed over, at most.
inline constexpr int64_t moment_nodes = 16;

/// Masses and growth; growth.mass, growth.base and growth.by_sum are not read.
struct MomentParams {
  BudParams growth = {};
  MomentMass mass = MomentMass::gap;
};

/// buds as TreeBuds gives them. q [B, H, Tq, d]; nodes: sums over the keys below each node, [B, H, rows, d]
/// for lookahead and contrast, else over the keys and then their squares, [B, H, rows, 2 d].
struct MomentBuds {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds);
  static void cuda(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds);
};

/// The level that Z_h is summed over, of a tree with this many leaves.
HEED_BOTH inline int64_t moment_level(int64_t height) {
  int64_t level = height;
  for (int64_t nodes = 1; level > 0 && 2 * nodes <= moment_nodes; nodes *= 2) --level;
  return level;
}
/// A node over more than one leaf, or its left child while the right one has no leaf yet.
HEED_BOTH inline TreeNode two_sided(TreeNode node, int64_t leaves) {
  while (node.right().begin() >= leaves) node = node.left();
  return node;
}

}  // namespace heed::kernel
