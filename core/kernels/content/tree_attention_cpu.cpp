// Attention over buds on the CPU. The backward pass adds gradients to nodes, then passes them down to the
// leaves.
#include "heed/core/kernels/content/tree_attention.h"

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/content/tree.h"
#include "heed/core/kernels/content/tree_attention_call.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Writes leaves [B, H, t, w] into nodes [B, H, rows, w] as leaves first, first + 1, ...; each that is a
/// right child completes its parent = left + right, and so on upwards. One task is some trees (b, h).
template <class T>
void sum_nodes(const Tensor& leaves, int64_t first, const Tensor& nodes) {
  const int64_t heads = leaves.extent(1), num_leaves = leaves.extent(2), width = leaves.extent(3);
  const HeadView<const T> from(leaves);
  const auto append = [&](T* tree, int64_t position, const T* leaf) {
    TreeNode node = TreeNode::leaf(position);
    std::copy_n(leaf, width, tree + node.row() * width);
    while (node.index % 2 == 1) {
      const T* right = tree + node.row() * width;
      const T* left = tree + TreeNode{node.level, node.index - 1}.row() * width;
      node = {node.level + 1, node.index / 2};
      T* sum = tree + node.row() * width;
#pragma GCC ivdep
      for (int64_t c = 0; c < width; ++c) sum[c] = left[c] + right[c];
    }
  };
  parallel_rows(leaves.extent(0) * heads, light_grain / std::max<int64_t>(1, num_leaves * width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t head = begin; head < end; ++head) {
                    T* const tree = nodes.data<T>() + head * nodes.extent(2) * width;
                    for (int64_t t = 0; t < num_leaves; ++t)
                      append(tree, first + t, from.at(head / heads, head % heads, t));
                  }
                });
  Count::add(2 * leaves.size());
}

/// Numbers of working memory for the sums of the nodes of one query.
template <class T>
int64_t tree_scratch(const TreeAttentionCall<T>& call) {
  return PrefixTree<T>::scratch(call.visible.keys, call.d) +
         PrefixTree<T>::scratch(call.visible.keys, call.dv);
}

/// Trees of keys and values, or of their gradients, with working memory of tree_scratch() numbers.
template <class Tree, class T>
struct KeyValueTrees {
  Tree keys, values;
  KeyValueTrees(T* memory, const TreeAttentionCall<T>& call)
      : keys(memory, call.d), values(memory + Tree::scratch(call.visible.keys, call.d), call.dv) {}
};

/// out[b, h, i, :] = sum_n a_n V_n over the buds n of query i (see TreeAttention), and lse. One task is some
/// queries (b, h, i).
template <class T>
void forward(const TreeAttentionCall<T>& call, const Tensor& out, const Tensor& lse) {
  const HeadView<T> outs(out);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (tree_scratch(call) + call.capacity));
  const auto attend = [&](int64_t row, KeyValueTrees<PrefixTree<T>, T>& trees, T* scores) -> int64_t {
    const int64_t head = row / call.queries, i = row % call.queries, b = head / call.heads;
    const int64_t leaves = call.visible.count(b, i);
    T* const sum = outs.at(b, head % call.heads, i);
    std::fill_n(sum, call.dv, T(0));
    lse.data<T>()[row] = minus_infinity<T>;
    if (leaves == 0) return 0;
    const T* const q = call.q.at(b, head % call.heads, i);
    int64_t flops = trees.keys.set_prefix(call.keys_of(head), leaves);
    flops += trees.values.set_prefix(call.values_of(head), leaves);
    const int32_t* const buds = call.buds_of(b, i);
    // scores [num_buds]: scale q . K_n / |n|.
    int64_t num_buds = 0;
    T max_score = minus_infinity<T>, total = 0;
    for (; num_buds < call.capacity && buds[num_buds] >= 0; ++num_buds) {
      const TreeNode node = TreeNode::at_row(buds[num_buds]);
      scores[num_buds] = call.scale * dot(q, trees.keys[node], call.d) / static_cast<T>(node.count(leaves));
      max_score = std::max(max_score, scores[num_buds]);
    }
    // out = sum e_n V_n / total with e_n = exp(score - max_score), total = sum |n| e_n or sum e_n.
    for (int64_t n = 0; n < num_buds; ++n) {
      const TreeNode node = TreeNode::at_row(buds[n]);
      const T e = std::exp(scores[n] - max_score);
      total += call.counted ? e * static_cast<T>(node.count(leaves)) : e;
      add_scaled(trees.values[node], e, call.dv, sum);
    }
    simd::scaled(sum, call.dv, T(1) / total, sum);
    lse.data<T>()[row] = max_score + std::log(total);
    return flops + num_buds * (2 * (call.d + call.dv) + 6);
  };
  const int64_t flops_per_query = call.capacity * 2 * (call.d + call.dv) + 1;
  parallel_rows(call.num_queries(), flops_per_task / flops_per_query, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    T* const scores = part.template data<T>();
    KeyValueTrees<PrefixTree<T>, T> trees(scores + call.capacity, call);
    int64_t flops = 0;
    for (int64_t row = begin; row < end; ++row) flops += attend(row, trees, scores);
    Count::add(flops);
  });
}

/// Number of parts into which the queries of a head are split, each of which sums gradients of nodes by
/// itself: more than one where there are too few heads to occupy all threads.
int64_t query_parts(int64_t heads, int64_t queries) {
  return queries < 256 ? 1 : std::max<int64_t>(1, 4 / std::max<int64_t>(1, heads));
}

/// dq, and gradients of nodes [B H parts, rows, d or dv]. One task is one part of a head: every `parts`-th
/// query, one after the other, each over its buds.
template <class T>
void backward(const TreeAttentionCall<T>& call, const TreeAttentionBackTensors& t, const Tensor& dkey_nodes,
              const Tensor& dvalue_nodes, int64_t parts) {
  const HeadView<const T> outs(t.out), douts(t.dout);
  const HeadView<T> dqs(t.dq);
  const T* const lse = t.lse.data<T>();
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 2 * tree_scratch(call));
  parallel_for(call.batch * call.heads * parts, [&](int64_t task) {
    const Scratch::Part part(scratch);
    T* const memory = part.template data<T>();
    KeyValueTrees<PrefixTree<T>, T> trees(memory, call);
    KeyValueTrees<PrefixTreeGradient<T>, T> gradients(memory + tree_scratch(call), call);
    const int64_t head = task / parts, b = head / call.heads, h = head % call.heads;
    T* const dkeys = dkey_nodes.data<T>() + task * call.rows * call.d;
    T* const dvalues = dvalue_nodes.data<T>() + task * call.rows * call.dv;
    std::fill_n(dkeys, call.rows * call.d, T(0));
    std::fill_n(dvalues, call.rows * call.dv, T(0));
    int64_t flops = 0;
    for (int64_t i = task % parts; i < call.queries; i += parts) {
      const int64_t leaves = call.visible.count(b, i);
      T* const dq = dqs.at(b, h, i);
      std::fill_n(dq, call.d, T(0));
      if (leaves == 0) continue;
      const T *const q = call.q.at(b, h, i), *const dout = douts.at(b, h, i);
      const T delta = dot(dout, outs.at(b, h, i), call.dv);
      flops += trees.keys.set_prefix(call.keys_of(head), leaves);
      flops += trees.values.set_prefix(call.values_of(head), leaves);
      gradients.keys.set_prefix(dkeys, leaves);
      gradients.values.set_prefix(dvalues, leaves);
      const int32_t* const buds = call.buds_of(b, i);
      // For each bud n with weight a_n and c_n = |n| or 1: dscore = a_n (dout . V_n - c_n delta) gives dq and
      // the gradient of K_n; a_n dout is added to the gradient of V_n.
      int64_t num_buds = 0;
      for (; num_buds < call.capacity && buds[num_buds] >= 0; ++num_buds) {
        const TreeNode node = TreeNode::at_row(buds[num_buds]);
        const auto size = static_cast<T>(node.count(leaves));
        const T* const key = trees.keys[node];
        const T weight = std::exp(call.scale * dot(q, key, call.d) / size - lse[head * call.queries + i]);
        const T dscore =
            weight * (dot(dout, trees.values[node], call.dv) - (call.counted ? size : T(1)) * delta);
        const T factor = dscore * call.scale / size;
        add_scaled(key, factor, call.d, dq);
        add_scaled(q, factor, call.d, gradients.keys[node]);
        add_scaled(dout, weight, call.dv, gradients.values[node]);
      }
      flops += gradients.keys.push_down() + gradients.values.push_down() +
               num_buds * (6 * call.d + 4 * call.dv + 8);
    }
    Count::add(flops);
  });
}

/// Gradients of leaves [B, H, t, w] from those of nodes [B H parts, rows, w], which are overwritten: adds up
/// the parts, then from the root down the gradient of every node to its children. One task is some heads (b,
/// h).
template <class T>
void push_down_to_leaves(const Tensor& nodes, int64_t parts, const Tensor& leaves) {
  const int64_t heads = leaves.extent(1), num_leaves = leaves.extent(2), width = leaves.extent(3);
  const int64_t rows = tree_rows(num_leaves);
  const HeadView<T> to(leaves);
  const auto push_down = [&](int64_t head) {
    T* const tree = nodes.data<T>() + head * parts * rows * width;
    for (int64_t part = 1; part < parts; ++part)
      add_scaled(tree + part * rows * width, T(1), rows * width, tree);
    for (int64_t level = tree_height(num_leaves); level > 0; --level) {
      for (TreeNode node{level, 0}; node.end() <= num_leaves; ++node.index) {
        const T* const gradient = tree + node.row() * width;
        add_scaled(gradient, T(1), width, tree + node.left().row() * width);
        add_scaled(gradient, T(1), width, tree + node.right().row() * width);
      }
    }
    for (int64_t t = 0; t < num_leaves; ++t) {
      std::copy_n(tree + TreeNode::leaf(t).row() * width, width, to.at(head / heads, head % heads, t));
    }
  };
  parallel_rows(leaves.extent(0) * heads, light_grain / std::max<int64_t>(1, num_leaves * width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t head = begin; head < end; ++head) push_down(head);
                });
  Count::add((2 + parts) * leaves.size());
}

}  // namespace

template <>
void TreeSums::cpu<target_isa>(const Tensor& leaves, int64_t first, const Tensor& nodes) {
  visit_float("tree_sums", nodes.dtype(), [&]<class T>(Type<T>) { sum_nodes<T>(leaves, first, nodes); });
}

template <>
void TreeAttention::cpu<target_isa>(const Tensor& q, const TreeParams& params, const Tensor& out,
                                    const Tensor& lse) {
  visit_float("tree_attention", q.dtype(),
              [&]<class T>(Type<T>) { forward(TreeAttentionCall<T>(q, params), out, lse); });
}

/// dq, dk and dv: gradients of queries and nodes first, then those of nodes are passed down to the leaves.
template <>
void TreeAttentionBack::cpu<target_isa>(const TreeAttentionBackTensors& t, const TreeParams& params) {
  visit_float("tree_attention", t.q.dtype(), [&]<class T>(Type<T>) {
    const TreeAttentionCall<T> call(t.q, params);
    const int64_t heads = call.batch * call.heads, parts = query_parts(heads, call.queries);
    const Tensor dkey_nodes = empty_like(t.q, Shape{heads * parts, call.rows, call.d});
    const Tensor dvalue_nodes = empty_like(t.q, Shape{heads * parts, call.rows, call.dv});
    backward(call, t, dkey_nodes, dvalue_nodes, parts);
    push_down_to_leaves<T>(dkey_nodes, parts, t.dk);
    push_down_to_leaves<T>(dvalue_nodes, parts, t.dv);
  });
}

}  // namespace heed::kernel
