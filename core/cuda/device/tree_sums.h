// Trees over positions, as kernels of the device see them.
#pragma once

#include <algorithm>

#include "heed/core/kernels/content/tree_buds.h"
#include "heed/core/kernels/content/tree_node.h"

namespace heed::cuda {

/// kernel::TreeReach as an argument of kernels.
struct Reach {
  int64_t keys, first_query;
  const int32_t* lengths;
  bool causal, self;

  explicit Reach(const kernel::TreeReach& reach)
      : keys(reach.keys),
        first_query(reach.first_query),
        lengths(pointer<int32_t>(reach.key_lengths)),
        causal(reach.causal),
        self(reach.self) {}
  /// Leaves before query i of sequence b.
  __device__ int64_t leaves(int64_t b, int64_t i) const {
    int64_t count = keys;
    if (causal) count = std::min(count, first_query + i + (self ? 1 : 0));
    if (lengths != nullptr) count = std::min<int64_t>(count, lengths[b]);
    return std::max<int64_t>(count, 0);
  }
};

/// Column `column` of the sum over those of the node's leaves that are among the first `leaves`. `nodes`
/// holds the sums of full nodes, `width` numbers per row; the sum of a node with later leaves is added up
/// from full nodes below it.
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
