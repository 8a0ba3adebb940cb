// Positions in clusters of 2, 4, 8, ...: which of them meet, and what they hold. Zhu and Soricut 2021, arXiv
// 2107.11906.
#pragma once

#include <array>

#include "autograd/ops.h"
#include "core/pattern.h"

namespace heed {

/// Level 0 holds positions, level l their clusters of 2^l, both in blocks of as many.
struct Clusters {
  int64_t block = 16;   ///< even
  bool causal = false;  ///< a position meets those before it only

  /// The highest level: that on which so many positions still need more than one block.
  int64_t height(int64_t length) const;
  /// Those that cluster `index` of a level with `count` clusters meets there, at most one run on each side:
  /// its own block and both neighbours on level 0; above, of both neighbours what did not meet on the level
  /// below.
  std::array<kernel::Pattern::Run, 2> met(int64_t level, int64_t index, int64_t count) const;
};

/// Keys and values of all levels, one after the other.
struct ClusterLevels {
  Tensor keys;                 ///< means [B, H, rows, d]: over children that are not empty; causal: over both
  Tensor values;               ///< sums [B, H, rows, dv]
  Tensor present;              ///< 1 where a cluster is not all padding, [1|B, 1, rows, 1]; empty when causal
  std::vector<int64_t> first;  ///< the row of each level's first cluster
  int64_t count(size_t level) const {
    return (level + 1 < first.size() ? first[level + 1] : keys.extent(2)) - first[level];
  }
};

/// From keys and values of positions, zero where they are padding; kept [B, 1, T, 1] is 1 where they are not,
/// or empty.
ClusterLevels cluster_levels(const Clusters& clusters, const Tensor& k, const Tensor& v, const Tensor& kept);
/// What clusters ask with, level after level, from q [B, H, T, d]: means as of keys; causal: the first of
/// each.
Tensor cluster_queries(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels);

/// Sums weighted by exponentials relative to `most`, which has no history.
struct Gathered {
  Tensor sums, most;
};
/// From what attention_with_sums() gives; there may be rows that met nothing.
Gathered gathered(const Tensor& with_sums);
/// Values over their last column, which counts; zero where nothing was counted. [..., w + 1] -> [..., w]
Tensor per_count(const Tensor& sums);

}  // namespace heed
