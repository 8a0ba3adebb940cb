// Attention over nodes of a tree: each weighs the sum of the values below it. Casinoformer, algorithm 1.
#pragma once

#include "core/kernels/tree_buds.h"

namespace heed::kernel {

/// nodes [B, H, rows, w], contiguous: leaves first, first + 1, ... become rows of `leaves` [B, H, t, w] (last
/// stride 1), and every node that they make full the sum of its two children. Rows in between hold nothing.
struct TreeSums {
  template <Isa>
  static void cpu(const Tensor& leaves, int64_t first, const Tensor& nodes);
  static void cuda(const Tensor& leaves, int64_t first, const Tensor& nodes);
};

struct TreeTerms {
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
  static void cpu(const Tensor& q, const TreeTerms& terms, const Tensor& out, const Tensor& lse);
  static void cuda(const Tensor& q, const TreeTerms& terms, const Tensor& out, const Tensor& lse);
};

/// Gradients (overwritten) from dout, with the buds held fixed; dk [B, H, keys, d] and dv [B, H, keys, dv]
/// are those of the leaves.
struct TreeAttentionBack {
  template <Isa>
  static void cpu(const Tensor& q, const TreeTerms& terms, const Tensor& out, const Tensor& lse,
                  const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv);
  static void cuda(const Tensor& q, const TreeTerms& terms, const Tensor& out, const Tensor& lse,
                   const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv);
};

}  // namespace heed::kernel
