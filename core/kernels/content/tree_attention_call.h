// A call of attention over buds as extents and pointers, for both devices.
#pragma once

#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/content/tree_attention.h"

namespace heed::kernel {

/// Extents and pointers of one call of TreeAttention or TreeAttentionBack.
template <class T>
struct TreeAttentionCall {
  int64_t batch, heads, queries, d, dv;
  int64_t num_full_nodes;  ///< full nodes of a tree over all keys
  int64_t capacity;        ///< upper limit of the number of buds of a query
  VisibleLeavesView visible;
  T scale;
  bool counts_leaves;
  const int32_t* buds;
  HeadView<const T> q;
  const T *key_nodes, *value_nodes;
  int64_t key_rows, value_rows;  ///< rows of a head in key_nodes and value_nodes

  TreeAttentionCall(const Tensor& query, const TreeParams& params)
      : batch(query.extent(0)),
        heads(query.extent(1)),
        queries(query.extent(2)),
        d(query.extent(3)),
        dv(params.value_nodes.extent(3)),
        num_full_nodes(tree_rows(params.visible.keys)),
        capacity(params.buds.extent(2)),
        visible(params.visible),
        scale(static_cast<T>(params.scale)),
        counts_leaves(params.counts_leaves),
        buds(params.buds.template data<int32_t>()),
        q(query),
        key_nodes(params.key_nodes.template data<T>()),
        value_nodes(params.value_nodes.template data<T>()),
        key_rows(params.key_nodes.extent(2)),
        value_rows(params.value_nodes.extent(2)) {}

  HEED_BOTH int64_t num_queries() const { return batch * heads * queries; }
  /// The buds [capacity] of query i of sequence b, -1 after the last one.
  HEED_BOTH const int32_t* buds_of(int64_t b, int64_t i) const { return buds + (b * queries + i) * capacity; }
  /// c_n, the number of times that a bud of `size` leaves counts in the denominator.
  HEED_BOTH T denominator_count(T size) const { return counts_leaves ? size : T(1); }
  /// Key sums of the nodes of a head, [key_rows, d]; 0 <= head < B H.
  HEED_BOTH const T* keys_of(int64_t head) const { return key_nodes + head * key_rows * d; }
  /// Value sums of the nodes of a head, [value_rows, dv].
  HEED_BOTH const T* values_of(int64_t head) const { return value_nodes + head * value_rows * dv; }
};

}  // namespace heed::kernel
