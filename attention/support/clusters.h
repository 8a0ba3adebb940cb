// Hierarchical clusters of 2, 4, 8, ... positions: which attend to which, their keys and values. Zhu and
// Soricut 2021, arXiv 2107.11906.
#pragma once

#include <array>

#include "heed/autograd/ops.h"
#include "heed/core/sparse_pattern.h"

namespace heed {

/// The hierarchy: level 0 holds positions, level l clusters of 2^l positions; every level is cut into blocks
/// of `block` clusters.
struct Clusters {
  int64_t block = 16;   ///< clusters of a block; even
  bool causal = false;  ///< a position attends to itself and earlier ones only

  /// The highest level for `length` positions: the last one with more than one block, or 0.
  int64_t height(int64_t length) const;
  /// The clusters that cluster `index` of a level with `count` clusters attends to, at most one run on each
  /// side. On level 0 these are its own and both neighbouring blocks; above, the parts of both neighbouring
  /// blocks that lower levels do not cover.
  std::array<kernel::Pattern::Run, 2> attended(int64_t level, int64_t index, int64_t count) const;
};

/// Keys and values of the clusters of all levels, concatenated.
struct ClusterLevels {
  Tensor keys;     ///< means [B, H, rows, d] over non-empty children; causal: over both
  Tensor values;   ///< sums [B, H, rows, dv]
  Tensor present;  ///< 0 where a cluster is all padding, else 1: [1|B, 1, rows, 1]; empty when causal
  std::vector<int64_t> first;  ///< index of each level's first row
  /// Number of clusters on a level, 0 the finest.
  int64_t count(size_t level) const {
    return (level + 1 < first.size() ? first[level + 1] : keys.extent(2)) - first[level];
  }
};

/// Builds the levels from keys and values [B, H, T, d] that are zero at padding; kept [B, 1, T, 1] is 0 at
/// padding and 1 elsewhere, or empty.
ClusterLevels cluster_levels(const Clusters& clusters, const Tensor& k, const Tensor& v, const Tensor& kept);
/// Queries of the clusters of all levels, concatenated, from q [B, H, T, d]: means as for keys; causal: the
/// first query of each cluster.
Tensor cluster_queries(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels);

/// Weighted sums of exponentials divided by exp(log_scale), which gets no gradient.
struct ScaledSums {
  Tensor sums;       ///< weighted values [B, H, T, dv], divided by exp(log_scale)
  Tensor log_scale;  ///< [B, H, T, 1]; -1e30 for a row without keys
};
/// Converts the result of attention_with_sums(); rows without keys are allowed.
ScaledSums scaled_sums(const Tensor& with_sums);
/// Divides by the last column, a sum of weights: [..., w + 1] -> [..., w]; zero where it is zero.
Tensor divided_by_count(const Tensor& sums);

}  // namespace heed
