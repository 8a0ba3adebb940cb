// Attention over nodes of a binary tree: the value of a node is the sum of the values of its leaves.
// Casinoformer, algorithm 1.
#pragma once

#include "heed/core/kernels/content/tree_buds.h"

namespace heed::kernel {

/// nodes [B, H, rows, w], contiguous: leaves first, first + 1, ... become rows of `leaves` [B, H, t, w] (last
/// stride 1), and every node that they make full the sum of its two children. Rows in between hold nothing.
struct TreeSums {
  template <Isa>
  static void cpu(const Tensor& leaves, int64_t first, const Tensor& nodes);
  static void cuda(const Tensor& leaves, int64_t first, const Tensor& nodes);
};

struct TreeParams {
  double scale = 1;
  /// A bud of |n| leaves counts |n| times in the denominator: the softmax of scores averaged over buds. Else
  /// once, as the paper has it.
  bool counted = true;
  TreeReach reach = {};
  Tensor buds = {};                         ///< of TreeBuds
  Tensor key_nodes = {}, value_nodes = {};  ///< of TreeSums: [B, H, rows, d] and [B, H, rows, dv]
};

/// out_i = sum over buds of a_n V_n, a_n = e_n / sum c_m e_m, e_n = exp(scale q_i . K_n / |n|), c = |n| or 1.
/// q [B, H, Tq, d], out [B, H, Tq, dv]; lse [B, H, Tq]: the logarithms of the denominators. Zeros where there
/// are no leaves.
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
