// softmax(q k^T) v over the blocks of a pattern: time and memory follow what is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/isa.h"
#include "core/tensor.h"

namespace heed::kernel {

/// Which keys each query may look at, as runs: query i of head h owns runs[first[h Tq + i]] up to first[h Tq
/// + i + 1], each [begin, end) of keys, in order and without overlap. One head's pattern may serve all (heads
/// = 1).
struct Pattern {
  int64_t heads = 1, queries = 0, keys = 0;
  std::vector<int64_t> first;  ///< [heads Tq + 1]
  struct Run {
    int32_t begin, end;
  };
  std::vector<Run> runs;
  int64_t kept() const;  ///< entries of the map that are not masked, over all heads
};

/// What a call over a pattern fixes besides q, k, v. Key lengths as in AttentionTerms.
struct BlockTerms {
  double scale = 1;
  std::shared_ptr<const Pattern> pattern = {};
  Tensor key_lengths = {};  ///< i32 [B] or empty
};

/// Shapes as in kernel::Attention.
struct BlockAttention {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                  const Tensor& out, const Tensor& lse);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                   const Tensor& out, const Tensor& lse);
};

struct BlockAttentionBack {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                  const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                  const Tensor& dk, const Tensor& dv);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                   const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                   const Tensor& dk, const Tensor& dv);
};

}  // namespace heed::kernel
