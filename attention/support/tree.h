// Trees of keys and values: sums over nodes, a cache that grows in place, and attention maps.
#pragma once

#include "heed/attention/base/multi_head_attention.h"

namespace heed {

/// Sums over the nodes of trees (core/kernels/content/tree_node.h), all [B, H, rows, width].
struct TreeNodes {
  Tensor keys;      ///< sums over the keys below a node, and the keys themselves
  Tensor values;    ///< sums over the values below it
  Tensor features;  ///< sums over phi of the keys; may be empty
};

/// A cache of keys and values as trees. Appending a key completes one node on average; tree_attention() sums
/// incomplete nodes. While gradients are recorded, keys and values are cached instead, and every call
/// rebuilds the trees.
struct TreeCache final : AttentionCache {
  /// Features of keys whose first row is at position `first`; may return an empty tensor.
  using Feature = std::function<Tensor(const Tensor& keys, int64_t first)>;

  TreeNodes nodes;         ///< capacity doubles; empty while gradients are recorded
  Tensor recorded_keys;    ///< [B, H, length, d], with gradients; else empty
  Tensor recorded_values;  ///< [B, H, length, dv], with gradients; else empty
  void fields(Fields& f) override;

  /// Appends heads.k and heads.v (where given), sets them to all cached keys and values, and returns the
  /// trees.
  TreeNodes append_to_cache(Heads& heads, const Feature& feature);
};

/// The trees of the keys and values of one call, without a cache.
TreeNodes tree_nodes(const Heads& heads, const TreeCache::Feature& feature);

/// The attention map [B, H, Tq, keys] of tree_attention().
Tensor tree_map(const Tensor& q, const Tensor& k, kernel::TreeParams params);

}  // namespace heed
