// Sums over the leaves of a tree's nodes, in kernels of the device.
#pragma once

#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/content/tree_buds.h"
#include "heed/core/kernels/content/tree_node.h"

namespace heed::cuda {

/// Column `column` of the sum over those leaves of a node that are among the first `leaves` of the tree. Row
/// node.row() of nodes [rows, width] has the sum of a node whose leaves all are; other sums are added up from
/// the full nodes below.
template <class T>
__device__ T node_sum(const T* nodes, int64_t width, kernel::TreeNode node, int64_t leaves, int64_t column) {
  if (node.end() <= leaves) return nodes[node.row() * width + column];
  const int64_t last_leaf = leaves - 1;
  int64_t level = trailing_zeros(static_cast<uint64_t>(leaves));
  T sum = nodes[kernel::TreeNode{level, last_leaf >> level}.row() * width + column];
  for (++level; level <= node.level; ++level) {
    const int64_t child_index = last_leaf >> (level - 1);
    if (child_index % 2 == 1)
      sum = nodes[kernel::TreeNode{level - 1, child_index - 1}.row() * width + column] + sum;
  }
  return sum;
}

}  // namespace heed::cuda
