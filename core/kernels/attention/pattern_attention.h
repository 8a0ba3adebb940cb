// softmax(q k^T) v over the blocks of a pattern: time and memory follow what is kept.
#pragma once

#include <memory>

#include "core/isa.h"
#include "core/random.h"
#include "core/rounding.h"

namespace heed::kernel {

struct Pattern;  // core/pattern.h

/// What a call over a pattern fixes besides q, k, v. Key lengths as in AttentionTerms.
struct BlockTerms {
  double scale = 1;
  std::shared_ptr<const Pattern> pattern = {};
  Tensor key_lengths = {};  ///< i32 [B] or empty
  int64_t first_key = 0;    ///< what key 0 is to the key lengths: a decoder that forgets has no earlier ones
  double dropout = 0;       ///< on the normalised weights; pairs draw as in AttentionTerms
  Draw draw = {};
  Rounding rounding = Rounding::none;  ///< of factors of products, on devices; those of the CPU are exact
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
