// Attention over nodes of a binary tree: the value of a node is the sum of the values of its leaves.
// Casinoformer, algorithm 1.
#pragma once

#include "heed/core/kernels/content/tree_buds.h"

namespace heed::kernel {

/// nodes [B, H, rows, w], contiguous: writes leaves [B, H, t, w] (last stride 1) as leaves first, first + 1,
/// ... of the tree, and for every node that becomes full the sum of its two children. Leaves the rows of
/// other nodes as they are.
struct TreeSums {
  template <Isa>
  static void cpu(const Tensor& leaves, int64_t first, const Tensor& nodes);
  static void cuda(const Tensor& leaves, int64_t first, const Tensor& nodes);
};

/// Params of TreeAttention.
struct TreeParams {
  double scale = 1;
  /// A bud of |n| leaves counts |n| times in the denominator: the softmax over leaves that have the mean
  /// score of their bud. Else it counts once, as in the paper.
  bool counted = true;
  VisibleLeaves visible = {};
  Tensor buds = {};                         ///< i32 [B, Tq, capacity], from TreeBuds
  Tensor key_nodes = {}, value_nodes = {};  ///< from TreeSums: [B, H, rows, d] and [B, H, rows, dv]
};

/// out_i = sum over buds of a_n V_n, a_n = e_n / sum c_m e_m, e_n = exp(scale q_i . K_n / |n|), c = |n| or 1.
/// K_n and V_n are the sums of the keys and values of bud n. q [B, H, Tq, d], out [B, H, Tq, dv]; lse [B, H,
/// Tq]: the logarithms of the denominators. Zeros where a query sees no leaf.
struct TreeAttention {
  template <Isa>
  static void cpu(const Tensor& q, const TreeParams& params, const Tensor& out, const Tensor& lse);
  static void cuda(const Tensor& q, const TreeParams& params, const Tensor& out, const Tensor& lse);
};

/// What TreeAttentionBack reads and writes.
struct TreeAttentionBackTensors {
  Tensor q;         ///< [B, H, Tq, d]
  Tensor out, lse;  ///< as the forward pass wrote them
  Tensor dout;      ///< [B, H, Tq, dv]
  Tensor dq;        ///< written: [B, H, Tq, d]
  Tensor dk, dv;    ///< written, of the leaves: [B, H, keys, d] and [B, H, keys, dv]
};

/// Gradients of TreeAttention with the buds held fixed.
struct TreeAttentionBack {
  template <Isa>
  static void cpu(const TreeAttentionBackTensors& t, const TreeParams& params);
  static void cuda(const TreeAttentionBackTensors& t, const TreeParams& params);
};

}  // namespace heed::kernel
