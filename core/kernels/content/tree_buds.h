// Chooses the nodes of a tree (buds) that a query attends to: begins with the root and splits buds of large
// mass. Casinoformer, algorithm 1.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// The mass of a bud n with |n| leaves, from its alignment x_n = a . (sum of its leaves); summed over heads.
enum class BudMass {
  uniform,      ///< 1
  decay,        ///< see decay_mass(): recent leaves weigh more
  exponential,  ///< exp(scale x_n / |n|)
  positive      ///< max(x_n, 0) / |n|
};

/// Which leaves of the tree each query sees: the first ones, up to its position and the length.
struct VisibleLeaves {
  int64_t keys = 0;         ///< leaves of the tree
  bool causal = false;      ///< a query sees leaves up to its own position only
  bool self = true;         ///< with `causal`, a query sees the leaf at its own position as well
  int64_t first_query = 0;  ///< the position of query 0
  Tensor key_lengths = {};  ///< i32 [B] or empty

  /// Number of leaves that query i of sequence b sees, on the CPU.
  int64_t count(int64_t b, int64_t i) const;
};

/// VisibleLeaves as pointers, for both devices.
struct VisibleLeavesView {
  int64_t keys, first_query;
  const int32_t* lengths;
  bool causal, self;

  explicit VisibleLeavesView(const VisibleLeaves& visible)
      : keys(visible.keys),
        first_query(visible.first_query),
        lengths(data_or_null<int32_t>(visible.key_lengths)),
        causal(visible.causal),
        self(visible.self) {}
  /// Number of leaves that query i of sequence b sees.
  HEED_BOTH int64_t count(int64_t b, int64_t i) const {
    int64_t num_leaves = keys;
    if (causal) num_leaves = std::min(num_leaves, first_query + i + (self ? 1 : 0));
    if (lengths != nullptr) num_leaves = std::min<int64_t>(num_leaves, lengths[b]);
    return std::max<int64_t>(num_leaves, 0);
  }
};

inline int64_t VisibleLeaves::count(int64_t b, int64_t i) const {
  return VisibleLeavesView(*this).count(b, i);
}

/// Arguments of TreeBuds.
struct BudParams {
  VisibleLeaves visible = {};
  BudMass mass = BudMass::exponential;
  double scale = 1;       ///< scale of BudMass::exponential
  double base = 0.99;     ///< base of BudMass::decay
  bool by_sum = false;    ///< multiplies masses by |n|, except uniform and decay
  double exponent = 0.5;  ///< l leaves give ceil(l^exponent) buds
  int64_t parallel = 1;   ///< number of buds that are split at once without `greedy`, a power of two
  bool greedy = true;  ///< splits the bud of largest mass, the earlier one of equals, one at a time from the
                       ///< root; else buds drawn in proportion to their masses
  Draw draw = {};      ///< random numbers without `greedy`, where `draws` is empty
  Tensor draws = {};   ///< uniform numbers in [0, 1), f64 [Tq, bud_draws()], or empty
};

/// Number of buds of a query that sees this many leaves: leaves^exponent, rounded up.
HEED_BOTH inline int64_t bud_count(int64_t leaves, double exponent) {
  if (leaves < 1) return 0;
  // A power that rounding left just above a whole number, such as 4^0.5 = 2 + 4e-16, gives that number.
  constexpr double rounding_margin = 1 - 1e-12;
  const double count = std::ceil(std::pow(static_cast<double>(leaves), exponent) * rounding_margin);
  return std::clamp<int64_t>(static_cast<int64_t>(count), 1, leaves);
}
/// The mass BudMass::decay of the `count` leaves from `first`, for a query that sees `leaves` leaves:
/// base^(leaves - first - count) - base^(leaves - first). Recent leaves weigh most, and all leaves together
/// weigh 1 - base^leaves.
HEED_BOTH inline double decay_mass(double base, int64_t leaves, int64_t first, int64_t count) {
  return std::pow(base, static_cast<double>(leaves - first - count)) -
         std::pow(base, static_cast<double>(leaves - first));
}
/// Added to every mass above zero.
inline constexpr double bud_epsilon = 1e-10;
/// Upper limit of masses, so that their sums stay finite.
inline constexpr double max_bud_mass = 1e290;
/// exp(min(x, 600)): keeps masses below max_bud_mass.
HEED_BOTH inline double bounded_exp(double x) {
  constexpr double max_exponent = 600;
  return std::exp(max_exponent < x ? max_exponent : x);
}

/// The mass of a bud, summed over heads; 0 for a bud of one leaf, which cannot be split, above 0 for others.
/// alignment(h) returns a . (sum of the bud's leaves) of head h. Params has the members mass, scale, base and
/// by_sum of BudParams.
template <class Params, class Alignment>
HEED_BOTH double bud_mass(const Params& params, TreeNode node, int64_t leaves, int64_t heads,
                          Alignment alignment) {
  const int64_t count = node.count(leaves);
  if (count <= 1) return 0;
  if (params.mass == BudMass::uniform) return 1;
  if (params.mass == BudMass::decay)
    return decay_mass(params.base, leaves, node.begin(), count) + bud_epsilon;
  double mass = 0;
  for (int64_t h = 0; h < heads; ++h) {
    const double mean = static_cast<double>(alignment(h)) / static_cast<double>(count);
    mass += params.mass == BudMass::exponential ? bounded_exp(params.scale * mean) : std::max(mean, 0.0);
  }
  if (params.by_sum) mass *= static_cast<double>(count);
  return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
}

/// Upper limit of the number of buds of a query.
int64_t bud_capacity(const BudParams& params);
/// Upper limit of the number of random draws of a query.
int64_t bud_draws(const BudParams& params);

/// buds i32 [B, Tq, bud_capacity] = rows of nodes (TreeNode::row) in the order of their leaves, then -1.
/// Together they cover each leaf that the query sees once. All heads share them. a [B, H, Tq, w] gives
/// alignments with the sums of leaves, nodes [B, H, rows, w]; both are empty where unused.
struct TreeBuds {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds);
  static void cuda(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds);
};

}  // namespace heed::kernel
