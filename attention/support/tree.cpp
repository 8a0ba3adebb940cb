// Appends to trees of keys and values, and computes maps.
#include "heed/attention/support/tree.h"

#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// Appends rows [B, H, t, w], which may be empty, as leaves to a tree of `length` leaves, and completes the
/// nodes above them.
void append(Tensor& tree, int64_t length, const Tensor& rows) {
  if (!rows) return;
  const int64_t total = length + rows.extent(2);
  if (!tree || tree.extent(2) < kernel::tree_rows(total)) {
    // A tree filled in one call gets the capacity it needs; one that grows step by step doubles.
    const int64_t capacity = tree ? std::max(2 * length, total) : (rows.extent(2) == 1 ? 16 : total);
    Shape shape = rows.shape();
    shape[2] = kernel::tree_rows(capacity);
    const Tensor grown = Tensor::zeros(shape, rows.dtype(), rows.device());
    if (length > 0) {
      const int64_t kept = kernel::tree_rows(length);
      launch<kernel::Copy>(rows.device(), view::slice(tree, 2, 0, kept), view::slice(grown, 2, 0, kept));
    }
    tree = grown;
  }
  launch<kernel::TreeSums>(rows.device(), rows.detach(), length, tree);
}

/// The leaves of a tree [B, H, length, w], as a view.
Tensor leaves_of(const Tensor& tree, int64_t length) {
  Strides strides = tree.strides();
  strides[2] *= 2;
  return tree.seen_as(Shape{tree.extent(0), tree.extent(1), length, tree.extent(3)}, strides, tree.offset());
}

}  // namespace

void TreeCache::fields(Fields& f) {
  f("keys", nodes.keys);
  f("values", nodes.values);
  f("features", nodes.features);
  f("recorded_keys", recorded_keys);
  f("recorded_values", recorded_values);
}

TreeNodes tree_nodes(const Heads& heads, const TreeCache::Feature& feature) {
  TreeNodes nodes;
  append(nodes.keys, 0, heads.k);
  append(nodes.values, 0, heads.v);
  append(nodes.features, 0, feature(heads.k, 0));
  return nodes;
}

TreeNodes TreeCache::append_to_cache(Heads& heads, const Feature& feature) {
  if (!heads.k && length == 0) fail_without_keys();
  const bool has_history = recording() && heads.k && (heads.k.node() || heads.v.node());
  if (has_history && !recorded_keys && length > 0) {
    recorded_keys = leaves_of(nodes.keys, length);
    recorded_values = leaves_of(nodes.values, length);
    nodes = {};
  }
  if (has_history || recorded_keys) {
    const auto joined = [](const Tensor& earlier, const Tensor& rows) {
      if (!earlier || !rows) return earlier ? earlier : rows;
      return concat(std::vector<Tensor>{earlier, rows}, 2);
    };
    recorded_keys = heads.k = joined(recorded_keys, heads.k);
    recorded_values = heads.v = joined(recorded_values, heads.v);
    length = heads.k.extent(2);
    return tree_nodes(heads, feature);
  }
  if (heads.k) {
    append(nodes.keys, length, heads.k);
    append(nodes.values, length, heads.v);
    append(nodes.features, length, feature(heads.k, length));
    length += heads.k.extent(2);
  }
  heads.k = leaves_of(nodes.keys, length);
  heads.v = leaves_of(nodes.values, length);
  return nodes;
}

Tensor tree_map(const Tensor& q, const Tensor& k, kernel::TreeParams params) {
  const NoGrad no_grad;
  params.value_nodes = Tensor();
  return tree_attention(q, k, identity_values(k), params);
}

}  // namespace heed
