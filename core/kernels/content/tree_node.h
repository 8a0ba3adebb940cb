// Nodes of a binary tree over positions, and the row of memory that holds each.
#pragma once

#include <cstdint>

#include "heed/core/bits.h"

namespace heed::kernel {

/// The node over positions [index 2^level, (index + 1) 2^level). Rows hold nodes in the order of their middle
/// positions, leaves in the even rows, so no row moves when a tree grows.
struct TreeNode {
  int64_t level = 0, index = 0;

  HEED_BOTH static TreeNode at_row(int64_t row) {
    const int level = trailing_zeros(static_cast<uint64_t>(row + 1));
    return {level, row >> (level + 1)};
  }
  HEED_BOTH static TreeNode leaf(int64_t position) { return {0, position}; }
  /// The row of memory that holds the node.
  HEED_BOTH int64_t row() const { return ((2 * index + 1) << level) - 1; }
  HEED_BOTH int64_t begin() const { return index << level; }
  HEED_BOTH int64_t end() const { return (index + 1) << level; }
  HEED_BOTH TreeNode left() const { return {level - 1, 2 * index}; }
  HEED_BOTH TreeNode right() const { return {level - 1, 2 * index + 1}; }
  /// Number of the first `leaves` positions that are below this node.
  HEED_BOTH int64_t count(int64_t leaves) const { return (end() < leaves ? end() : leaves) - begin(); }
};

/// Number of rows that hold all full nodes of a tree with this many leaves.
HEED_BOTH inline int64_t tree_rows(int64_t leaves) { return leaves > 0 ? 2 * leaves - 1 : 0; }
/// The level of the smallest node over all leaves.
HEED_BOTH inline int64_t tree_height(int64_t leaves) {
  return leaves > 1 ? bit_width(static_cast<uint64_t>(leaves - 1)) : 0;
}

}  // namespace heed::kernel
