// Chooses the nodes of a tree (buds) that a query attends to: from the root on, buds of large mass are split.
// Casinoformer, algorithm 1.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// The mass of a bud n with |n| leaves, from alignments x_n = a . (sum of its leaves) added over heads.
enum class BudMass {
  uniform,  ///< 1
  decay,    ///< base^(distance of its last leaf) - base^(1 + distance of its first): recent leaves weigh more
  exponential,  ///< exp(scale x_n / |n|)
  positive      ///< max(x_n, 0) / |n|
};

/// How many leaves a query has before it.
struct TreeReach {
  int64_t keys = 0;         ///< leaves of the tree
  bool causal = false;      ///< leaves up to the query's own position only
  bool self = true;         ///< the query's own position counts as well
  int64_t first_query = 0;  ///< the position of query 0
  Tensor key_lengths = {};  ///< i32 [B] or empty

  /// Of query i in sequence b, on the CPU.
  int64_t leaves(int64_t b, int64_t i) const {
    int64_t count = keys;
    if (causal) count = std::min(count, first_query + i + (self ? 1 : 0));
    if (key_lengths) count = std::min<int64_t>(count, key_lengths.data<int32_t>()[b]);
    return std::max<int64_t>(count, 0);
  }
};

/// How buds grow.
struct BudParams {
  TreeReach reach = {};
  BudMass mass = BudMass::exponential;
  double scale = 1;       ///< of exponential
  double base = 0.99;     ///< of decay
  bool by_sum = false;    ///< masses times |n|, except uniform and decay
  double exponent = 0.5;  ///< l leaves give ceil(l^exponent) buds
  int64_t parallel = 1;   ///< buds split at once, a power of two
  bool greedy =
      true;        ///< the largest mass, the earlier bud of equals, one at a time from the root; else drawn
  Draw draw = {};  ///< where numbers come from when not greedy,
  Tensor draws = {};  ///< unless these are given: uniform in [0, 1), f64 [Tq, bud_draws()]
};

/// Buds of a query with this many leaves before it.
HEED_BOTH inline int64_t bud_count(int64_t leaves, double exponent) {
  if (leaves < 1) return 0;
  // A power that is whole up to rounding stays that number.
  const double wanted = std::ceil(std::pow(static_cast<double>(leaves), exponent) * (1 - 1e-12));
  return std::clamp<int64_t>(static_cast<int64_t>(wanted), 1, leaves);
}
/// The mass `decay` of the `count` positions from `first`, with `leaves` of them before the query: recent
/// ones weigh most, and all together 1 - base^leaves.
HEED_BOTH inline double decay_mass(double base, int64_t leaves, int64_t first, int64_t count) {
  return std::pow(base, static_cast<double>(leaves - first - count)) -
         std::pow(base, static_cast<double>(leaves - first));
}
/// Added to every mass above zero, and the largest mass.
inline constexpr double bud_epsilon = 1e-10, max_bud_mass = 1e290;
/// At most so many buds come out, and numbers are drawn, for this many leaves.
int64_t bud_capacity(const BudParams& params);
int64_t bud_draws(const BudParams& params);

/// buds i32 [B, Tq, bud_capacity]: rows of nodes (core/kernels/content/tree.h) in order of their leaves, all
/// positions before the query once; -1 where there are no more. All heads share them. a [B, H, Tq, w] is what
/// alignments are made with and nodes [B, H, rows, w] their sums; both empty for masses that do not need
/// them.
struct TreeBuds {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds);
  static void cuda(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds);
};

}  // namespace heed::kernel
