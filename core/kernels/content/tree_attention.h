// Attention over nodes of a binary tree: the value of a node is the sum of the values of its leaves.
// Casinoformer, algorithm 1.
#pragma once

#include "heed/core/kernels/content/tree_buds.h"

namespace heed::kernel {

/// Appends leaves to trees of sums: writes leaves [B, H, t, w] (last stride 1) as leaves first, first + 1,
/// ... of the trees nodes [B, H, rows, w] (contiguous), and for every node that becomes full the sum of its
/// two children. Does not change the rows of other nodes.
struct TreeSums {
  template <Isa>
  static void cpu(const Tensor& leaves, int64_t first, const Tensor& nodes);
  static void cuda(const Tensor& leaves, int64_t first, const Tensor& nodes);
};

/// Arguments of TreeAttention besides queries.
struct TreeParams {
  double scale = 1;
  /// Whether a bud of |n| leaves counts |n| times in the denominator, which gives the softmax over leaves
  /// that have the mean score of their bud. Else it counts once, as in the paper.
  bool counts_leaves = true;
  VisibleLeaves visible = {};
  Tensor buds = {};                         ///< i32 [B, Tq, capacity], written by TreeBuds
  Tensor key_nodes = {}, value_nodes = {};  ///< written by TreeSums: [B, H, rows, d] and [B, H, rows, dv]
};

/// out[i, :] = sum over the buds n of query i of a_n V_n, with a_n = e_n / sum_m c_m e_m, e_n = exp(scale q_i
/// . K_n / |n|), c_n = |n| with counts_leaves, else 1. K_n and V_n are the sums of the keys and values of the
/// |n| leaves of bud n. q [B, H, Tq, d], out [B, H, Tq, dv]; lse [B, H, Tq] gets the logarithms of the
/// denominators. A query that sees no leaf gets zeros, and lse -inf.
struct TreeAttention {
  template <Isa>
  static void cpu(const Tensor& q, const TreeParams& params, const Tensor& out, const Tensor& lse);
  static void cuda(const Tensor& q, const TreeParams& params, const Tensor& out, const Tensor& lse);
};

/// Tensors that TreeAttentionBack reads and writes.
struct TreeAttentionBackTensors {
  Tensor q;         ///< [B, H, Tq, d]
  Tensor out, lse;  ///< as the forward pass wrote them
  Tensor dout;      ///< [B, H, Tq, dv]
  Tensor dq;        ///< written: [B, H, Tq, d]
  Tensor dk, dv;    ///< written, gradients of the leaves: [B, H, keys, d] and [B, H, keys, dv]
};

/// Gradients of TreeAttention with the buds held fixed.
struct TreeAttentionBack {
  template <Isa>
  static void cpu(const TreeAttentionBackTensors& t, const TreeParams& params);
  static void cuda(const TreeAttentionBackTensors& t, const TreeParams& params);
};

}  // namespace heed::kernel
