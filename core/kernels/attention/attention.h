// Attention softmax(q k^T) v, computed in tiles without a buffer of size Tq x Tk. Dao et al. 2022, arXiv
// 2205.14135; Rabe and Staats 2021, arXiv 2112.05682.
#pragma once

#include <memory>

#include "heed/core/isa.h"
#include "heed/core/matmul_precision.h"
#include "heed/core/packed_sequences.h"
#include "heed/core/random.h"

namespace heed {

class MaskFormula;
class ScoreFormula;

/// Formulas of a program for each pair of a query and a key (core/score_formula.h). Either may be null.
struct PairFormulas {
  std::shared_ptr<const ScoreFormula> score = {};  ///< changes scores
  std::shared_ptr<const MaskFormula> mask = {};    ///< hides keys

  explicit operator bool() const { return score != nullptr || mask != nullptr; }  ///< true with either
};

}  // namespace heed

namespace heed::kernel {

/// Settings of an attention call.
struct AttentionParams {
  double scale = 1;
  bool causal = false;      ///< query i sees keys j <= i + first_query
  int64_t first_query = 0;  ///< absolute position of query 0 (Tk - Tq when decoding)
  Tensor key_lengths = {};  ///< i32 [B]; keys at or past it are not seen; empty: all are
  Tensor bias = {};         ///< [1|B, 1|H, 1|Tq, 1|Tk], added to the scores; empty: none. Gets no gradient.
  Tensor relative = {};  ///< [H, Tq + Tk - 1], entry i - j + Tk - 1 is added to the score of query i and key
                         ///< j; empty: none
  Tensor sink = {};      ///< [H], one more score in each row's sum, without a value; empty: none
  double softcap = 0;    ///< above 0: a score s becomes softcap tanh(s / softcap), before anything is added
  double dropout = 0;    ///< probability of dropping a normalised weight; that of query i and key j of head
                         ///< (b, h) takes random number ((b H + h) Tq + i) Tk + j
  Draw draw = {};
  Rounding rounding = Rounding::none;  ///< rounds factors of products on devices; bf16: on CPUs with AMX
  PackedSequences queries = {};        ///< how q, out and their gradients are packed; empty: they are padded
  PackedSequences keys = {};           ///< how k, v and their gradients are packed; empty: they are padded
  /// Formulas of a program, on the CPU alone: of scores `scale q . k`, before anything is added to them, and
  /// of the mask. A formula of scores excludes a softcap, and either of them rounding.
  PairFormulas formulas = {};
};

/// q [B, H, Tq, d], k [B, Hk, Tk, d], v [B, Hk, Tk, dv], out [B, H, Tq, dv]: views whose last stride is 1,
/// any other strides. Hk divides H: head h has the keys of head h Hk / H. lse [B, H, Tq] (contiguous) keeps
/// the log-sum-exp of each row. The output of a query without keys is zero, its lse -inf or the sink. Where
/// lse is [2, B, H, Tq], its second half keeps the rounding errors of the first (kernel::RowLse), without
/// which gradients are wrong at scores of 1e5 and more in f32. Packed queries are q and out [1, H, N, d], and
/// Tq is then the length of the longest sequence, in lse, too; packed keys are k and v [1, Hk, N, d].
struct Attention {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                  const Tensor& out, const Tensor& lse);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                   const Tensor& out, const Tensor& lse);
};

/// Tensors of AttentionBack and PatternAttentionBack. Shapes and strides are those of Attention; each
/// gradient has the shape of its tensor and is overwritten.
struct AttentionBackTensors {
  Tensor q, k, v;
  Tensor out, lse;        ///< results of the forward pass
  Tensor dout;            ///< [B, H, Tq, dv]
  Tensor dq, dk, dv;      ///< written
  Tensor drelative = {};  ///< written: [H, Tq + Tk - 1], contiguous; empty: not wanted
};

/// Gradients of Attention: recomputes the weights [Tq, Tk] tile by tile. drelative and a softcap exclude each
/// other.
struct AttentionBack {
  template <Isa>
  static void cpu(const AttentionBackTensors& t, const AttentionParams& params);
  static void cuda(const AttentionBackTensors& t, const AttentionParams& params);
};

}  // namespace heed::kernel
