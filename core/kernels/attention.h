// softmax(q k^T) v in tiles: no buffer of size Tq x Tk. Dao et al. 2022, arXiv 2205.14135; Rabe and Staats
// 2021, arXiv 2112.05682.
#pragma once

#include "core/isa.h"
#include "core/random.h"

namespace heed::kernel {

/// What an attention call fixes besides q, k, v.
struct AttentionTerms {
  double scale = 1;
  bool causal = false;      ///< query i sees keys j <= i + first_query
  int64_t first_query = 0;  ///< absolute position of query 0 (Tk - Tq when decoding)
  Tensor key_lengths = {};  ///< i32 [B]; keys at or past it are not seen; empty: all are
  Tensor bias = {};    ///< [1|B, 1|H, 1|Tq, 1|Tk], added to the scores; empty: none. Gets no gradient here.
  double dropout = 0;  ///< on the normalised weights; element (b, h, i, j) draws at ((b H + h) Tq + i) Tk + j
  Draw draw = {};
};

/// q [B, H, Tq, d], k [B, H, Tk, d], v [B, H, Tk, dv], out [B, H, Tq, dv]: views whose last stride is 1, any
/// other strides. lse [B, H, Tq] (contiguous) keeps the log of each row's sum. A row with no key gives zeros
/// and lse = -inf.
struct Attention {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                  const Tensor& out, const Tensor& lse);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                   const Tensor& out, const Tensor& lse);
};

/// dq, dk, dv (views like q, k, v; overwritten) from dout, recomputing the weights tile by tile.
struct AttentionBack {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                  const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                  const Tensor& dk, const Tensor& dv);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                   const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                   const Tensor& dk, const Tensor& dv);
};

}  // namespace heed::kernel
