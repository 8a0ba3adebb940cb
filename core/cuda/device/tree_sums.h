// Trees over positions, as kernels of the device see them.
#pragma once

#include <algorithm>

#include "heed/core/kernels/content/tree_buds.h"
#include "heed/core/kernels/content/tree_node.h"

namespace heed::cuda {

/// Column `column` of the sum over the node's leaves among the first `leaves` of all. Full nodes lie in
/// `nodes`, `width` numbers a row; one that the last leaf cuts is summed from the full ones below it.
template <class T>
__device__ T node_sum(const T* nodes, int64_t width, kernel::TreeNode node, int64_t leaves, int64_t column) {
  if (node.end() <= leaves) return nodes[node.row() * width + column];
  const int64_t last = leaves - 1;
  int64_t level = trailing_zeros(static_cast<uint64_t>(leaves));
  T sum = nodes[kernel::TreeNode{level, last >> level}.row() * width + column];
  for (++level; level <= node.level; ++level) {
    const int64_t below = last >> (level - 1);
    if (below % 2 == 1) sum = nodes[kernel::TreeNode{level - 1, below - 1}.row() * width + column] + sum;
  }
  return sum;
}

}  // namespace heed::cuda
