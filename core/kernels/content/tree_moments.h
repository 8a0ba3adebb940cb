// Buds chosen by the moments of the scores below each node: splits the nodes where treating all keys of a
// node alike loses most attention.
#pragma once

#include "heed/core/kernels/content/tree_buds.h"
#include "heed/core/kernels/content/tree_node.h"

namespace heed::kernel {

/// The mass of a bud n with |n| leaves, summed over heads. m and v are the mean and variance of the scores
/// scale q . k of the keys below it; v leaves out the covariances of columns. Z is the sum of |n| exp(m + v /
/// 2) of that head (for lookahead and contrast: of |n| exp(m)) over one level of the tree with at most
/// moment_nodes nodes; dividing by it keeps heads with large scores from outweighing the others. Where scores
/// are normally distributed, exact attention gives the keys of n the weight |n| exp(m + v / 2), and a bud
/// that is not split |n| exp(m), which by Jensen's inequality is never more.
enum class MomentMass {
  gap,       ///< |n| (exp(m + v / 2) - exp(m)) / Z: the attention that is lost without a split
  variance,  ///< |n| exp(2 m + v) (exp(v) - 1) / Z^2: the sum of squared errors of the keys' weights, where
             ///< one weight stands for all
  contrast,  ///< (|l| |r| / |n|) (exp(m_l) - exp(m_r))^2 / Z^2: the part of those squared errors that a split
             ///< into l and r removes
  lookahead  ///< (|l| exp(m_l) + |r| exp(m_r) - |n| exp(m)) / Z: the attention that a split into l and r adds
};
/// Upper limit of the number of nodes that Z is summed over.
inline constexpr int64_t moment_nodes = 16;

/// Arguments of MomentBuds, which ignores growth.mass, growth.base and growth.by_sum.
struct MomentParams {
  BudParams growth = {};
  MomentMass mass = MomentMass::gap;
};

/// buds i32 [B, Tq, bud_capacity], laid out as those of TreeBuds. q [B, H, Tq, d]; nodes: sums over the keys
/// below each node, [B, H, rows, d] for lookahead and contrast, else over the keys and then their squares,
/// [B, H, rows, 2 d].
struct MomentBuds {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds);
  static void cuda(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds);
};

/// The level whose nodes Z is summed over, in a tree of this height.
HEED_BOTH inline int64_t moment_level(int64_t height) {
  int64_t level = height;
  for (int64_t nodes = 1; level > 0 && 2 * nodes <= moment_nodes; nodes *= 2) --level;
  return level;
}
/// The node, or its highest left descendant, both of whose children have leaves among the first `leaves`. The
/// node must cover more than one of them.
HEED_BOTH inline TreeNode two_sided(TreeNode node, int64_t leaves) {
  while (node.right().begin() >= leaves) node = node.left();
  return node;
}

/// Mean and variance of the scores below a node.
struct Moments {
  double mean, variance;
};

/// log Z = log of the sum of |n| exp(m + v / 2) over the nodes n of moment_level(), by an online log-sum-exp.
/// moments(node) returns m and v of one head.
template <class MomentsOf>
HEED_BOTH double log_moment_sum(int64_t leaves, MomentsOf moments) {
  double max_log = -HUGE_VAL, sum = 0;
  for (TreeNode node{moment_level(tree_height(leaves)), 0}; node.begin() < leaves; ++node.index) {
    const Moments scores = moments(node);
    const double log_weight =
        std::log(static_cast<double>(node.count(leaves))) + scores.mean + scores.variance / 2;
    if (log_weight > max_log) {
      sum *= std::exp(max_log - log_weight);
      max_log = log_weight;
    }
    sum += std::exp(log_weight - max_log);
  }
  return max_log + std::log(sum);
}

/// The mass of a node of more than one leaf in one head, see MomentMass. log_z is log Z of the head, and
/// moments(node) returns m and v.
template <class MomentsOf>
HEED_BOTH double moment_mass(MomentMass kind, TreeNode node, int64_t leaves, double log_z,
                             MomentsOf moments) {
  const auto count = static_cast<double>(node.count(leaves));
  // Returns factor exp(log_weight) / Z.
  const auto normalized = [log_z](double factor, double log_weight) {
    return factor * bounded_exp(log_weight - log_z);
  };
  if (kind == MomentMass::lookahead || kind == MomentMass::contrast) {
    node = two_sided(node, leaves);
    const auto left = static_cast<double>(node.left().count(leaves)), right = count - left;
    const double left_mean = moments(node.left()).mean, right_mean = moments(node.right()).mean;
    if (kind == MomentMass::contrast) {
      const double difference = normalized(1, left_mean) - normalized(1, right_mean);
      return left * right / count * difference * difference;
    }
    const double mean = (left * left_mean + right * right_mean) / count;
    return std::max(normalized(left, left_mean) + normalized(right, right_mean) - normalized(count, mean),
                    0.0);
  }
  const Moments scores = moments(node);
  if (kind == MomentMass::variance) {
    constexpr double max_variance = 50;
    const double weight = normalized(1, scores.mean + scores.variance / 2);
    return count * weight * weight * std::expm1(std::min(scores.variance, max_variance));
  }
  return normalized(count, scores.mean + scores.variance / 2) - normalized(count, scores.mean);
}

}  // namespace heed::kernel
