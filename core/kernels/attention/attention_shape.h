// Extents and scores of an attention call, and log-sum-exps of its rows, for the CPU and devices.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/minus_infinity.h"

namespace heed::kernel {

inline constexpr double log2_e = 1.4426950408889634074;
inline constexpr double ln_2 = 0.69314718055994530942;

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// The log-sum-exp of a row, for the backward pass. One rounded number is not precise enough for large
/// scores: the weights 2^(score - lse) would be wrong. `residual` keeps what rounding lost; it is zero up to
/// max_exact.
template <class T>
struct RowLse {
  static constexpr T max_exact = T(256);
  T log;           ///< natural
  T residual = 0;  ///< in units of log2: to be added to log * log2(e)

  /// From the largest score of a row and the log of the sum of its weights relative to that score, both in
  /// base 2.
  HEED_BOTH static RowLse of(T row_max, T log2_row_sum) {
    const T log = (row_max + log2_row_sum) * static_cast<T>(ln_2);
    if (!(log > max_exact || log < -max_exact) || log - log != T(0)) return {log};
    return {log, (row_max - RowLse{log}.exponent()) + log2_row_sum};
  }
  /// A weight of the row is factor * 2^(score - base).
  struct Base {
    T base, factor;
  };
  HEED_BOTH Base split() const {
    const T rounded = exponent();
    if (residual == T(0)) return {rounded, T(1)};
    const T base = rounded + residual;
    return {base, std::exp2((base - rounded) - residual)};
  }
  /// The log in units of log2, without the residual.
  HEED_BOTH T exponent() const {
    // volatile: fused into a following sum, the product would round differently in each place.
    const volatile T rounded = log * static_cast<T>(log2_e);
    return rounded;
  }
  HEED_BOTH static RowLse of_empty_row() { return {minus_infinity<T>}; }
};

/// Merges the softmax over two sets of keys of one query: with out_a and out_b the outputs over each set, the
/// output over both is (factor_a out_a + factor_b out_b) / total.
template <class T>
struct MergedRows {
  T factor_a, factor_b, total;
  RowLse<T> lse;  ///< over both sets

  HEED_BOTH MergedRows(const RowLse<T>& a, const RowLse<T>& b) {
    if (a.residual == T(0) && b.residual == T(0)) {
      const T max_log = a.log > b.log ? a.log : b.log;
      factor_a = std::exp(a.log - max_log);
      factor_b = std::exp(b.log - max_log);
      total = factor_a + factor_b;
      lse = {max_log + std::log(total)};
      return;
    }
    const T difference = (b.exponent() - a.exponent()) + (b.residual - a.residual);
    const RowLse<T>& larger = difference > T(0) ? b : a;
    factor_a = difference > T(0) ? std::exp2(-difference) : T(1);
    factor_b = difference > T(0) ? T(1) : std::exp2(difference);
    total = factor_a + factor_b;
    lse = RowLse<T>::of(larger.exponent(), larger.residual + std::log2(total));
  }
};

/// The log-sum-exps of all rows in memory: [B, H, Tq], or [2, B, H, Tq] with the residuals in the second
/// half.
template <class T>
struct LseView {
  T* log = nullptr;
  T* residual = nullptr;  ///< null: not kept

  LseView() = default;
  LseView(const Tensor& lse, int64_t rows)
      : log(lse.data<T>()), residual(lse.size() == 2 * rows && rows > 0 ? lse.data<T>() + rows : nullptr) {}
  /// The view whose row 0 is row `row` of this one.
  HEED_BOTH LseView from(int64_t row) const {
    LseView out = *this;
    out.log += row;
    if (out.residual != nullptr) out.residual += row;
    return out;
  }
  HEED_BOTH RowLse<T> at(int64_t row) const { return {log[row], residual == nullptr ? T(0) : residual[row]}; }
  HEED_BOTH void put(int64_t row, const RowLse<T>& x) const {
    log[row] = x.log;
    if (residual != nullptr) residual[row] = x.residual;
  }
};

/// x clamped to [low, high].
HEED_BOTH inline int64_t within(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/// Extents of q [B, H, Tq, d], k [B, H / group, Tk, d] and v [B, H / group, Tk, dv], and which pairs of query
/// and key there are.
struct AttentionShape {
  int64_t B, H, group, Tq, Tk, d, dv;  ///< group: query heads that share keys
  bool causal = false;
  int64_t first_query = 0;               ///< absolute position of query 0
  const int32_t* key_lengths = nullptr;  ///< [B], in the memory of the tensors; null: Tk
  uint64_t dropout_offset;               ///< index of the random number of pair 0, see batch_shard.h

  AttentionShape(const Tensor& q, const Tensor& k, const Tensor& v)
      : B(q.extent(0)),
        H(q.extent(1)),
        group(std::max<int64_t>(1, q.extent(1) / std::max<int64_t>(k.extent(1), 1))),
        Tq(q.extent(2)),
        Tk(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        dropout_offset(skipped_draws(B * H * Tq * Tk)) {}

  /// Number of keys of batch row b.
  HEED_BOTH int64_t num_keys(int64_t b) const {
    return key_lengths == nullptr ? Tk : within(key_lengths[b], 0, Tk);
  }
  /// Number of keys that some query before `query_end` sees.
  HEED_BOTH int64_t num_keys_before(int64_t b, int64_t query_end) const {
    const int64_t keys = num_keys(b);
    return causal ? within(query_end + first_query, 0, keys) : keys;
  }
  /// The first query that sees key j.
  HEED_BOTH int64_t first_query_of(int64_t j) const { return causal ? within(j - first_query, 0, Tq) : 0; }
  /// True where query i may see key j, which must be below num_keys().
  HEED_BOTH bool sees(int64_t i, int64_t j) const { return !causal || j <= i + first_query; }
  /// Index of the random number with which dropout decides on the pair (i, j).
  HEED_BOTH uint64_t dropout_index(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return dropout_offset + static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk + j);
  }
  /// Index of the relative bias of the pair (i, j).
  HEED_BOTH int64_t relative_index(int64_t h, int64_t i, int64_t j) const {
    return h * (Tq + Tk - 1) + i - j + Tk - 1;
  }
};

/// How a call computes its scores. They are in units of log2, so each weight costs one exp2.
template <class T>
struct AttentionScores : AttentionShape {
  T scale;
  const T* bias;  ///< null: none
  int64_t bias_stride[4] = {0, 0, 0, 0};
  const T* relative;  ///< [H, Tq + Tk - 1]; null: none
  const T* sink;      ///< [H]; null: none
  T softcap;          ///< in units of log2; 0: none
  bool has_dropout;
  T keep_scale;  ///< factor of the weights that dropout keeps

  AttentionScores(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params)
      : AttentionShape(q, k, v),
        scale(static_cast<T>(params.scale)),
        bias(data_or_null<T>(params.bias)),
        relative(data_or_null<T>(params.relative)),
        sink(data_or_null<T>(params.sink)),
        softcap(static_cast<T>(params.softcap * log2_e)),
        has_dropout(dropout_threshold(params.dropout) > 0),
        keep_scale(static_cast<T>(dropout_scale(params.dropout))) {
    causal = params.causal;
    first_query = params.first_query;
    key_lengths = data_or_null<int32_t>(params.key_lengths);
    for (int64_t axis = 0; bias != nullptr && axis < 4; ++axis) {
      bias_stride[axis] = params.bias.extent(axis) == 1 ? 0 : params.bias.strides()[axis];
    }
  }

  HEED_BOTH T scale_log2() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
  HEED_BOTH bool has_bias() const { return bias != nullptr || relative != nullptr; }
  /// The bias of the pair (i, j).
  HEED_BOTH const T* bias_at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return bias + b * bias_stride[0] + h * bias_stride[1] + i * bias_stride[2] + j * bias_stride[3];
  }
  /// The relative bias of key j and the queries from i on.
  HEED_BOTH const T* relative_at(int64_t h, int64_t i, int64_t j) const {
    return relative + relative_index(h, i, j);
  }
  /// The sink of head h in units of log2; -infinity: none.
  HEED_BOTH T sink_log2(int64_t h) const {
    return sink == nullptr ? minus_infinity<T> : sink[h] * static_cast<T>(log2_e);
  }
};

/// Floating-point operations of a call, forward or backward: two per multiply-add. Counts pairs in groups of
/// 16 queries, as the CPU computes them, and ignores key lengths.
inline int64_t attention_flops(const AttentionShape& x, bool back) {
  AttentionShape all = x;
  all.key_lengths = nullptr;
  int64_t pairs = 0;
  for (int64_t i = 0; i < x.Tq; i += 16) {
    const int64_t end = i + 16 < x.Tq ? i + 16 : x.Tq;
    pairs += (end - i) * all.num_keys_before(0, end);
  }
  return 2 * x.B * x.H * pairs * (back ? 3 * x.d + 2 * x.dv : x.d + x.dv);
}

}  // namespace heed::kernel
