// softmax(q k^T) v over the pairs of a sparse pattern: time and memory grow with the number of pairs.
#pragma once

#include <memory>

#include "heed/core/isa.h"
#include "heed/core/kernels/attention/attention.h"

namespace heed::kernel {

struct Pattern;  // core/sparse_pattern.h

/// Settings of a pattern attention call.
struct PatternParams {
  double scale = 1;
  std::shared_ptr<const Pattern> pattern = {};
  Tensor key_lengths = {};  ///< i32 [B]; keys at or past it are not seen; empty: all are
  double dropout = 0;       ///< probability, with the random numbers of AttentionParams
  Draw draw = {};
  Rounding rounding = Rounding::none;  ///< rounds operands of matrix products on devices
};

/// out_i = sum_j softmax_j(scale q_i . k_j) v_j over the keys j that the pattern gives query i, and lse.
/// Shapes are those of kernel::Attention.
struct PatternAttention {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                  const Tensor& out, const Tensor& lse);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                   const Tensor& out, const Tensor& lse);
};

/// Gradients of PatternAttention; drelative stays empty.
struct PatternAttentionBack {
  template <Isa>
  static void cpu(const AttentionBackTensors& t, const PatternParams& params);
  static void cuda(const AttentionBackTensors& t, const PatternParams& params);
};

}  // namespace heed::kernel
