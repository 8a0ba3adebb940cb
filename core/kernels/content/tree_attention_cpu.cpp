// Attention over buds on the CPU. The gradient goes to nodes first, and from them to the leaves below.
#include "heed/core/kernels/content/tree_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/content/tree.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Copies leaves [B, H, t, w] into nodes as leaves first, first + 1, ...; each that is a right child
/// completes its parent = left + right, and so on upwards. One task is some trees (b, h).
template <class T>
void sum_up(const Tensor& leaves, int64_t first, const Tensor& nodes) {
  const int64_t heads = leaves.extent(1), count = leaves.extent(2), width = leaves.extent(3);
  const HeadView<const T> from(leaves);
  T* const all = nodes.data<T>();
  const int64_t rows = nodes.extent(2);
  parallel_rows(leaves.extent(0) * heads, light_grain / std::max<int64_t>(1, count * width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t at = begin; at < end; ++at) {
                    T* const tree = all + at * rows * width;
                    for (int64_t t = 0; t < count; ++t) {
                      TreeNode node = TreeNode::leaf(first + t);
                      std::copy_n(from.at(at / heads, at % heads, t), width, tree + node.row() * width);
                      while (node.index % 2 == 1) {
                        const T* right = tree + node.row() * width;
                        const T* left = tree + TreeNode{node.level, node.index - 1}.row() * width;
                        node = {node.level + 1, node.index / 2};
                        T* to = tree + node.row() * width;
#pragma GCC ivdep
                        for (int64_t c = 0; c < width; ++c) to[c] = left[c] + right[c];
                      }
                    }
                  }
                });
  Count::add(2 * leaves.size());
}

/// Extents and pointers of one call.
template <class T>
struct Call {
  int64_t batch, heads, queries, d, dv, rows, capacity;
  const TreeParams& params;
  const int32_t* buds;
  HeadView<const T> q;
  const T *keys, *values;
  int64_t key_rows, value_rows;

  Call(const Tensor& query, const TreeParams& t)
      : batch(query.extent(0)),
        heads(query.extent(1)),
        queries(query.extent(2)),
        d(query.extent(3)),
        dv(t.value_nodes.extent(3)),
        rows(tree_rows(t.reach.keys)),
        capacity(t.buds.extent(2)),
        params(t),
        buds(t.buds.data<int32_t>()),
        q(query),
        keys(t.key_nodes.data<T>()),
        values(t.value_nodes.data<T>()),
        key_rows(t.key_nodes.extent(2)),
        value_rows(t.value_nodes.extent(2)) {}

  const int32_t* buds_of(int64_t b, int64_t i) const { return buds + (b * queries + i) * capacity; }
  int64_t numbers() const {  // of working memory that both directions need
    return TreeView<T>::scratch(params.reach.keys, d) + TreeView<T>::scratch(params.reach.keys, dv);
  }
  int64_t flops_of_query() const { return capacity * 2 * (d + dv) + 1; }
};

/// out[b, h, i, :] = sum_n a_n V_n over the buds n of query i, as in TreeAttention, and lse. One task is some
/// queries (b, h, i).
template <class T>
void forward(const Call<T>& call, const Tensor& out, const Tensor& lse) {
  const HeadView<T> outs(out);
  T* const sums = lse.data<T>();
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (call.numbers() + call.capacity));
  const auto scale = static_cast<T>(call.params.scale);
  parallel_rows(call.batch * call.heads * call.queries, flops_per_task / call.flops_of_query(),
                [&](int64_t begin, int64_t end) {
                  const Scratch::Part part(scratch);
                  T* memory = part.template data<T>();
                  TreeView<T> keys(memory, call.d);
                  memory += keys.scratch(call.params.reach.keys, call.d);
                  TreeView<T> values(memory, call.dv);
                  T* const scores = memory + values.scratch(call.params.reach.keys, call.dv);
                  int64_t flops = 0;
                  for (int64_t at = begin; at < end; ++at) {
                    const int64_t head = at / call.queries, i = at % call.queries, b = head / call.heads;
                    const int64_t leaves = call.params.reach.leaves(b, i);
                    T* const to = outs.at(b, head % call.heads, i);
                    std::fill_n(to, call.dv, T(0));
                    sums[at] = -std::numeric_limits<T>::infinity();
                    if (leaves == 0) continue;
                    const T* const q = call.q.at(b, head % call.heads, i);
                    flops += keys.look(call.keys + head * call.key_rows * call.d, leaves);
                    flops += values.look(call.values + head * call.value_rows * call.dv, leaves);
                    const int32_t* const buds = call.buds_of(b, i);
                    // Scores of all buds: scale q . K_n / |n|, and the largest.
                    int64_t count = 0;
                    T most = -std::numeric_limits<T>::infinity(), total = 0;
                    for (; count < call.capacity && buds[count] >= 0; ++count) {
                      const TreeNode node = TreeNode::at_row(buds[count]);
                      scores[count] = scale * dot(q, keys[node], call.d) / static_cast<T>(node.count(leaves));
                      most = std::max(most, scores[count]);
                    }
                    // out = sum e_n V_n / total, e_n = exp(score - largest), total = sum |n| e_n or sum e_n.
                    for (int64_t n = 0; n < count; ++n) {
                      const TreeNode node = TreeNode::at_row(buds[n]);
                      const T e = std::exp(scores[n] - most);
                      total += call.params.counted ? e * static_cast<T>(node.count(leaves)) : e;
                      add_scaled(values[node], e, call.dv, to);
                    }
                    simd::scaled(to, call.dv, T(1) / total, to);
                    sums[at] = most + std::log(total);
                    flops += count * (2 * (call.d + call.dv) + 6);
                  }
                  Count::add(flops);
                });
}

/// Parts of the queries of a head that sum their own gradients of nodes: more than one where there are too
/// few heads to occupy all threads.
int64_t shares_of(int64_t heads, int64_t queries) {
  return queries < 256 ? 1 : std::max<int64_t>(1, 4 / std::max<int64_t>(1, heads));
}

/// dq, and the gradients of nodes [B H shares, rows, d or dv]. One task is one share of a head: every
/// `shares`-th query, one after the other, each over its buds.
template <class T>
void backward(const Call<T>& call, const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
              const Tensor& dkey_nodes, const Tensor& dvalue_nodes, int64_t shares) {
  const HeadView<const T> outs(out), douts(dout);
  const HeadView<T> dqs(dq);
  const T* const sums = lse.data<T>();
  T *const dkeys = dkey_nodes.data<T>(), *const dvalues = dvalue_nodes.data<T>();
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 2 * call.numbers());
  const auto scale = static_cast<T>(call.params.scale);
  parallel_for(call.batch * call.heads * shares, [&](int64_t piece) {
    const Scratch::Part part(scratch);
    T* memory = part.template data<T>();
    const int64_t for_key = TreeView<T>::scratch(call.params.reach.keys, call.d);
    const int64_t for_value = TreeView<T>::scratch(call.params.reach.keys, call.dv);
    TreeView<T> keys(memory, call.d), values(memory + for_key, call.dv);
    memory += for_key + for_value;
    TreeGradient<T> key_gradient(memory, call.d), value_gradient(memory + for_key, call.dv);
    const int64_t head = piece / shares, b = head / call.heads;
    T *const own_keys = dkeys + piece * call.rows * call.d, *const own_values =
                                                                dvalues + piece * call.rows * call.dv;
    std::fill_n(own_keys, call.rows * call.d, T(0));
    std::fill_n(own_values, call.rows * call.dv, T(0));
    int64_t flops = 0;
    for (int64_t i = piece % shares; i < call.queries; i += shares) {
      const int64_t leaves = call.params.reach.leaves(b, i);
      T* const to = dqs.at(b, head % call.heads, i);
      std::fill_n(to, call.d, T(0));
      if (leaves == 0) continue;
      const T *const q = call.q.at(b, head % call.heads, i), *const dout_row =
                                                                 douts.at(b, head % call.heads, i);
      const T along = dot(dout_row, outs.at(b, head % call.heads, i), call.dv);
      flops += keys.look(call.keys + head * call.key_rows * call.d, leaves);
      flops += values.look(call.values + head * call.value_rows * call.dv, leaves);
      key_gradient.look(own_keys, leaves);
      value_gradient.look(own_values, leaves);
      const int32_t* const buds = call.buds_of(b, i);
      // Each bud n: dscore = a_n (dout . V_n - c_n dout . out) goes to q and K_n, a_n dout to V_n.
      int64_t count = 0;
      for (; count < call.capacity && buds[count] >= 0; ++count) {
        const TreeNode node = TreeNode::at_row(buds[count]);
        const auto size = static_cast<T>(node.count(leaves));
        const T* const key = keys[node];
        const T weight = std::exp(scale * dot(q, key, call.d) / size - sums[head * call.queries + i]);
        const T dscore =
            weight * (dot(dout_row, values[node], call.dv) - (call.params.counted ? size : T(1)) * along);
        const T factor = dscore * scale / size;
        add_scaled(key, factor, call.d, to);
        add_scaled(q, factor, call.d, key_gradient[node]);
        add_scaled(dout_row, weight, call.dv, value_gradient[node]);
      }
      flops += key_gradient.settle() + value_gradient.settle() + count * (6 * call.d + 4 * call.dv + 8);
    }
    Count::add(flops);
  });
}

/// Gradients of leaves from those of nodes, which are overwritten: from the root down, every node adds its
/// gradient to its children.
template <class T>
void hand_down(const Tensor& nodes, int64_t shares, const Tensor& leaves) {
  const int64_t heads = leaves.extent(1), count = leaves.extent(2), width = leaves.extent(3);
  const int64_t rows = tree_rows(count);
  const HeadView<T> to(leaves);
  T* const all = nodes.data<T>();
  parallel_rows(leaves.extent(0) * heads, light_grain / std::max<int64_t>(1, count * width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t at = begin; at < end; ++at) {
                    T* const tree = all + at * shares * rows * width;
                    for (int64_t s = 1; s < shares; ++s)
                      add_scaled(tree + s * rows * width, T(1), rows * width, tree);
                    for (int64_t level = tree_height(count); level > 0; --level) {
                      for (TreeNode node{level, 0}; node.end() <= count; ++node.index) {
                        const T* const from = tree + node.row() * width;
                        add_scaled(from, T(1), width, tree + node.left().row() * width);
                        add_scaled(from, T(1), width, tree + node.right().row() * width);
                      }
                    }
                    for (int64_t t = 0; t < count; ++t)
                      std::copy_n(tree + TreeNode::leaf(t).row() * width, width,
                                  to.at(at / heads, at % heads, t));
                  }
                });
  Count::add((2 + shares) * leaves.size());
}

}  // namespace

template <>
void TreeSums::cpu<here>(const Tensor& leaves, int64_t first, const Tensor& nodes) {
  visit_float("tree_sums", nodes.dtype(),
              [&](auto type) { sum_up<typename decltype(type)::type>(leaves, first, nodes); });
}

template <>
void TreeAttention::cpu<here>(const Tensor& q, const TreeParams& params, const Tensor& out,
                              const Tensor& lse) {
  visit_float("tree_attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    forward<T>(Call<T>(q, params), out, lse);
  });
}

/// dq, dk and dv: gradients of queries and nodes first, then those of nodes are handed down to the leaves.
template <>
void TreeAttentionBack::cpu<here>(const TreeAttentionBackTensors& t, const TreeParams& params) {
  visit_float("tree_attention", t.q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Call<T> call(t.q, params);
    const int64_t heads = call.batch * call.heads, shares = shares_of(heads, call.queries);
    const Tensor dkey_nodes = empty_like(t.q, Shape{heads * shares, call.rows, call.d});
    const Tensor dvalue_nodes = empty_like(t.q, Shape{heads * shares, call.rows, call.dv});
    backward<T>(call, t.out, t.lse, t.dout, t.dq, dkey_nodes, dvalue_nodes, shares);
    hand_down<T>(dkey_nodes, shares, t.dk);
    hand_down<T>(dvalue_nodes, shares, t.dv);
  });
}

}  // namespace heed::kernel
