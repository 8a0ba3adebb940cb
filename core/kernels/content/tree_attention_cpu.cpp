// Attention over buds on the CPU. The backward pass adds gradients to nodes, then passes them down to the
// leaves.
#include "heed/core/kernels/content/tree_attention.h"

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/content/prefix_tree.h"
#include "heed/core/kernels/content/tree_attention_call.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Writes leaves [B, H, t, w] into nodes [B, H, rows, w] as leaves first, first + 1, ... A leaf that is a
/// right child completes its parent = left + right, and so on upwards. One task is some trees (b, h).
template <class T>
void sum_nodes(const Tensor& leaves, int64_t first, const Tensor& nodes) {
  const int64_t heads = leaves.extent(1), num_leaves = leaves.extent(2), width = leaves.extent(3);
  const HeadView<const T> leaf_rows(leaves);
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
                      append(tree, first + t, leaf_rows.at(head / heads, head % heads, t));
                  }
                });
  Count::add(2 * leaves.size());
}

/// Working memory for the sums of nodes of one query, in numbers.
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
  // Computes one row (b, h, i), with scores [capacity] as working memory; returns the number of operations.
  const auto attend = [&](int64_t row, KeyValueTrees<PrefixTree<T>, T>& trees, T* scores) -> int64_t {
    const int64_t head = row / call.queries, i = row % call.queries, b = head / call.heads;
    const int64_t leaves = call.visible.count(b, i);
    T* const out_row = outs.at(b, head % call.heads, i);
    std::fill_n(out_row, call.dv, T(0));
    lse.data<T>()[row] = -std::numeric_limits<T>::infinity();
    if (leaves == 0) return 0;
    const T* const q = call.q.at(b, head % call.heads, i);
    int64_t flops = trees.keys.set_prefix(call.keys_of(head), leaves);
    flops += trees.values.set_prefix(call.values_of(head), leaves);
    const int32_t* const buds = call.buds_of(b, i);
    // scores[n] = scale q . K_n / |n|.
    int64_t num_buds = 0;
    T max_score = minus_infinity<T>, total = 0;
    for (; num_buds < call.capacity && buds[num_buds] >= 0; ++num_buds) {
      const TreeNode node = TreeNode::at_row(buds[num_buds]);
      scores[num_buds] =
          call.scale * simd::dot(q, trees.keys[node], call.d) / static_cast<T>(node.count(leaves));
      max_score = std::max(max_score, scores[num_buds]);
    }
    // out = sum e_n V_n / total with e_n = exp(score - max_score), total = sum |n| e_n or sum e_n.
    for (int64_t n = 0; n < num_buds; ++n) {
      const TreeNode node = TreeNode::at_row(buds[n]);
      const T e = std::exp(scores[n] - max_score);
      total += call.counts_leaves ? e * static_cast<T>(node.count(leaves)) : e;
      simd::add_scaled(trees.values[node], e, call.dv, out_row);
    }
    simd::scaled(out_row, call.dv, T(1) / total, out_row);
    lse.data<T>()[row] = max_score + std::log(total);
    return flops + num_buds * (2 * (call.d + call.dv) + 6);
  };
  const int64_t flops_per_query = call.capacity * 2 * (call.d + call.dv) + 1;
  parallel_rows(call.num_queries(), flops_per_task / flops_per_query, [&](int64_t begin, int64_t end) {
    const Scratch::Part task_memory(scratch);
    T* const scores = task_memory.template data<T>();
    KeyValueTrees<PrefixTree<T>, T> trees(scores + call.capacity, call);
    int64_t flops = 0;
    for (int64_t row = begin; row < end; ++row) flops += attend(row, trees, scores);
    Count::add(flops);
  });
}

/// Number of groups into which the queries of a head are split, each of which sums gradients of nodes by
/// itself: more than one where there are too few heads to occupy all threads.
int64_t num_query_groups(int64_t heads, int64_t queries) {
  return queries < 256 ? 1 : std::max<int64_t>(1, 4 / std::max<int64_t>(1, heads));
}

/// Pointers of one query row of the backward pass, and the number of leaves that it sees.
template <class T>
struct BackQuery {
  int64_t leaves;
  const int32_t* buds;  ///< [capacity]
  const T *q, *out;     ///< [d] and [dv]
  T lse;
  const T* dout;  ///< [dv]
  T* dq;          ///< [d]
};

/// Adds the gradients of one query row to its dq and to those of nodes. With a_n = exp(score_n - lse) and
/// dscore_n = a_n (dout . V_n - c_n dout . out) for each bud n (see TreeAttention):
///   dq += dscore_n scale K_n / |n|,  dK_n += dscore_n scale q / |n|,  dV_n += a_n dout.
/// Returns the number of operations.
template <class T>
int64_t back_query(const TreeAttentionCall<T>& call, const BackQuery<T>& query,
                   const KeyValueTrees<PrefixTree<T>, T>& trees,
                   const KeyValueTrees<PrefixTreeGradient<T>, T>& gradients) {
  const T dout_dot_out = simd::dot(query.dout, query.out, call.dv);
  int64_t num_buds = 0;
  for (; num_buds < call.capacity && query.buds[num_buds] >= 0; ++num_buds) {
    const TreeNode node = TreeNode::at_row(query.buds[num_buds]);
    const auto size = static_cast<T>(node.count(query.leaves));
    const T* const key_sum = trees.keys[node];
    const T weight = std::exp(call.scale * simd::dot(query.q, key_sum, call.d) / size - query.lse);
    const T dscore = weight * (simd::dot(query.dout, trees.values[node], call.dv) -
                               call.denominator_count(size) * dout_dot_out);
    const T factor = dscore * call.scale / size;
    simd::add_scaled(key_sum, factor, call.d, query.dq);
    simd::add_scaled(query.q, factor, call.d, gradients.keys[node]);
    simd::add_scaled(query.dout, weight, call.dv, gradients.values[node]);
  }
  return gradients.keys.push_down() + gradients.values.push_down() +
         num_buds * (6 * call.d + 4 * call.dv + 8);
}

/// dq, and gradients of nodes [B H groups, num_full_nodes, d or dv]. One task is one group of queries of a
/// head: every `groups`-th query, one after the other, each over its buds.
template <class T>
void backward(const TreeAttentionCall<T>& call, const TreeAttentionBackTensors& t, const Tensor& dkey_nodes,
              const Tensor& dvalue_nodes, int64_t groups) {
  const HeadView<const T> outs(t.out), douts(t.dout);
  const HeadView<T> dqs(t.dq);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * 2 * tree_scratch(call));
  parallel_for(call.batch * call.heads * groups, [&](int64_t task) {
    const Scratch::Part task_memory(scratch);
    T* const memory = task_memory.template data<T>();
    KeyValueTrees<PrefixTree<T>, T> trees(memory, call);
    KeyValueTrees<PrefixTreeGradient<T>, T> gradients(memory + tree_scratch(call), call);
    const int64_t head = task / groups, b = head / call.heads, h = head % call.heads;
    T* const dkeys = dkey_nodes.data<T>() + task * call.num_full_nodes * call.d;
    T* const dvalues = dvalue_nodes.data<T>() + task * call.num_full_nodes * call.dv;
    std::fill_n(dkeys, call.num_full_nodes * call.d, T(0));
    std::fill_n(dvalues, call.num_full_nodes * call.dv, T(0));
    int64_t flops = 0;
    for (int64_t i = task % groups; i < call.queries; i += groups) {
      const BackQuery<T> query{.leaves = call.visible.count(b, i),
                               .buds = call.buds_of(b, i),
                               .q = call.q.at(b, h, i),
                               .out = outs.at(b, h, i),
                               .lse = t.lse.data<T>()[head * call.queries + i],
                               .dout = douts.at(b, h, i),
                               .dq = dqs.at(b, h, i)};
      std::fill_n(query.dq, call.d, T(0));
      if (query.leaves == 0) continue;
      flops += trees.keys.set_prefix(call.keys_of(head), query.leaves);
      flops += trees.values.set_prefix(call.values_of(head), query.leaves);
      gradients.keys.set_prefix(dkeys, query.leaves);
      gradients.values.set_prefix(dvalues, query.leaves);
      flops += back_query(call, query, trees, gradients);
    }
    Count::add(flops);
  });
}

/// Gradients of leaves [B, H, t, w] from those of nodes [B H groups, num_full_nodes, w], which are
/// overwritten: adds up the groups, then from the root down the gradient of every node to its children. One
/// task is some heads (b, h).
template <class T>
void push_down_to_leaves(const Tensor& nodes, int64_t groups, const Tensor& leaves) {
  const int64_t heads = leaves.extent(1), num_leaves = leaves.extent(2), width = leaves.extent(3);
  const int64_t size = tree_rows(num_leaves) * width;  // numbers of a tree
  const HeadView<T> leaf_rows(leaves);
  const auto push_down = [&](int64_t head) {
    T* const tree = nodes.data<T>() + head * groups * size;
    for (int64_t group = 1; group < groups; ++group) simd::add_scaled(tree + group * size, T(1), size, tree);
    for (int64_t level = tree_height(num_leaves); level > 0; --level) {
      for (TreeNode node{level, 0}; node.end() <= num_leaves; ++node.index) {
        const T* const gradient = tree + node.row() * width;
        simd::add_scaled(gradient, T(1), width, tree + node.left().row() * width);
        simd::add_scaled(gradient, T(1), width, tree + node.right().row() * width);
      }
    }
    for (int64_t t = 0; t < num_leaves; ++t)
      std::copy_n(tree + TreeNode::leaf(t).row() * width, width, leaf_rows.at(head / heads, head % heads, t));
  };
  parallel_rows(leaves.extent(0) * heads, light_grain / std::max<int64_t>(1, num_leaves * width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t head = begin; head < end; ++head) push_down(head);
                });
  Count::add((2 + groups) * leaves.size());
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
    const int64_t heads = call.batch * call.heads, groups = num_query_groups(heads, call.queries);
    const Tensor dkey_nodes = empty_like(t.q, Shape{heads * groups, call.num_full_nodes, call.d});
    const Tensor dvalue_nodes = empty_like(t.q, Shape{heads * groups, call.num_full_nodes, call.dv});
    backward(call, t, dkey_nodes, dvalue_nodes, groups);
    push_down_to_leaves<T>(dkey_nodes, groups, t.dk);
    push_down_to_leaves<T>(dvalue_nodes, groups, t.dv);
  });
}

}  // namespace heed::kernel
