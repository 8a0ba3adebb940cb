// What attention over a tree of keys is made of: sums over nodes that grow in place, and its map.
#pragma once

#include "attention/headed.h"

namespace heed {

/// Sums over the nodes of trees (core/kernels/tree.h), all [B, H, rows, width].
struct TreeNodes {
  Tensor keys, values, features;  ///< features are empty where no mass needs them
};

/// Keys and values as trees. Appending a key completes one node on average; what it cuts is summed by those
/// who look. While a tape records, keys and values are kept with their history instead, and trees are made
/// anew.
struct TreeMemory final : Memory {
  using Feature = std::function<Tensor(const Tensor& keys, int64_t first)>;  ///< empty result: none

  TreeNodes nodes;                  ///< room that doubles; empty with a tape
  Tensor taped_keys, taped_values;  ///< [B, H, length, d]; empty without one
  void fields(Fields& f) override;

  /// Appends heads.k and heads.v (where given), puts all that is remembered into them, and returns the trees.
  TreeNodes remember(Heads& heads, const Feature& feature);
};

/// The trees of keys and values that are all there at once.
TreeNodes tree_nodes(const Heads& heads, const TreeMemory::Feature& feature);

/// The weight of each key: [B, H, Tq, keys].
Tensor tree_map(const Tensor& q, const Tensor& k, kernel::TreeTerms terms);

}  // namespace heed
