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
/// scores: the weights 2^(score - lse) would be wrong. `residual` keeps the rounding error of `log`; it is
/// zero where |log| is at most max_exact.
template <class T>
struct RowLse {
  static constexpr T max_exact = T(256);
  T log;           ///< natural logarithm
  T residual = 0;  ///< in log2 units: log2 of the sum of exponentials is log * log2(e) + residual

  /// The log-sum-exp of a row with largest score row_max and log2_row_sum = log2(sum 2^(score - row_max)),
  /// both in log2 units.
  HEED_BOTH static RowLse of(T row_max, T log2_row_sum) {
    const T log = (row_max + log2_row_sum) * static_cast<T>(ln_2);
    if (!(log > max_exact || log < -max_exact) || log - log != T(0)) return {log};
    return {log, (row_max - RowLse{log}.in_log2()) + log2_row_sum};
  }
  /// A weight of the row is factor * 2^(score - base).
  struct WeightBase {
    T base, factor;
  };
  HEED_BOTH WeightBase weight_base() const {
    const T rounded = in_log2();
    if (residual == T(0)) return {rounded, T(1)};
    const T base = rounded + residual;
    return {base, std::exp2((base - rounded) - residual)};
  }
  /// `log` in log2 units, without the residual.
  HEED_BOTH T in_log2() const {
    // volatile keeps the compiler from fusing the product into a following sum, in some places only.
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
    const T difference = (b.in_log2() - a.in_log2()) + (b.residual - a.residual);
    const RowLse<T>& larger = difference > T(0) ? b : a;
    factor_a = difference > T(0) ? std::exp2(-difference) : T(1);
    factor_b = difference > T(0) ? T(1) : std::exp2(difference);
    total = factor_a + factor_b;
    lse = RowLse<T>::of(larger.in_log2(), larger.residual + std::log2(total));
  }
};

/// The log-sum-exps of all rows in memory: [B, H, Tq], or [2, B, H, Tq] with the residuals second.
template <class T>
struct LseView {
  T* log = nullptr;
  T* residual = nullptr;  ///< null: the tensor has none

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
  HEED_BOTH void put(int64_t row, const RowLse<T>& lse) const {
    log[row] = lse.log;
    if (residual != nullptr) residual[row] = lse.residual;
  }
};

/// x clamped to [low, high].
HEED_BOTH inline int64_t within(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/// Extents of q [B, H, Tq, d], k [B, H / group, Tk, d] and v [B, H / group, Tk, dv], and which keys each
/// query sees. `group` is the number of query heads that share the keys of one key head.
struct AttentionShape {
  int64_t B, H, group, Tq, Tk, d, dv;
  const int32_t *query_starts, *key_starts;  ///< [B + 1]: of packed sequences; null: padded rows
  bool causal = false;
  int64_t first_query = 0;               ///< absolute position of query 0
  const int32_t* key_lengths = nullptr;  ///< [B], in the memory of the tensors; null: key_rows()
  uint64_t dropout_offset;               ///< index of the random number of the first pair, see batch_shard.h

  AttentionShape(const Tensor& q, const Tensor& k, const Tensor& v, const PackedSequences& queries = {},
                 const PackedSequences& keys = {})
      : B(queries ? queries.count() : q.extent(0)),
        H(q.extent(1)),
        group(std::max<int64_t>(1, q.extent(1) / std::max<int64_t>(k.extent(1), 1))),
        Tq(queries ? queries.longest : q.extent(2)),
        Tk(keys ? keys.longest : k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        query_starts(data_or_null<int32_t>(queries.starts)),
        key_starts(data_or_null<int32_t>(keys.starts)),
        dropout_offset(skipped_draws(B * H * Tq * Tk)) {}

  /// Number of queries of batch row b: rows of q and out.
  HEED_BOTH int64_t num_queries(int64_t b) const {
    return query_starts == nullptr ? Tq : query_starts[b + 1] - query_starts[b];
  }
  /// Number of rows of k and v that batch row b has, past its key length, too.
  HEED_BOTH int64_t key_rows(int64_t b) const {
    return key_starts == nullptr ? Tk : key_starts[b + 1] - key_starts[b];
  }
  /// Number of keys of batch row b.
  HEED_BOTH int64_t num_keys(int64_t b) const {
    return key_lengths == nullptr ? key_rows(b) : within(key_lengths[b], 0, key_rows(b));
  }
  /// Number of keys that the queries before `query_end` see: the last of them sees the most.
  HEED_BOTH int64_t num_keys_before(int64_t b, int64_t query_end) const {
    const int64_t keys = num_keys(b);
    return causal ? within(query_end + first_query, 0, keys) : keys;
  }
  /// The first query that sees key j.
  HEED_BOTH int64_t first_query_of(int64_t j) const { return causal ? within(j - first_query, 0, Tq) : 0; }
  /// True where the causal mask lets query i see key j; the caller checks j < num_keys().
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

/// Shape of a call and how it computes its scores. They are in log2 units, so each weight costs one exp2.
template <class T>
struct AttentionScores : AttentionShape {
  T scale;
  const T* bias;  ///< null: none
  int64_t bias_stride[4] = {0, 0, 0, 0};
  const T* relative;  ///< [H, Tq + Tk - 1]; null: none
  const T* sink;      ///< [H]; null: none
  T softcap;          ///< in log2 units; 0: none
  bool has_dropout;
  T keep_scale;  ///< factor of the weights that dropout keeps

  AttentionScores(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params)
      : AttentionShape(q, k, v, params.queries, params.keys),
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
  /// The sink of head h in log2 units; -infinity: none.
  HEED_BOTH T sink_log2(int64_t h) const {
    return sink == nullptr ? minus_infinity<T> : sink[h] * static_cast<T>(log2_e);
  }
};

enum class Direction { forward, backward };

/// Floating-point operations of a call with so many pairs of query and key in all heads, two per
/// multiply-add.
inline int64_t flops_of_pairs(int64_t pairs, const AttentionShape& call, Direction direction) {
  return 2 * pairs * (direction == Direction::backward ? 3 * call.d + 2 * call.dv : call.d + call.dv);
}

/// Floating-point operations of a dense call. Counts pairs in groups of 16 queries, as the CPU computes them,
/// and ignores key lengths: packed sequences count as the longest of them.
inline int64_t attention_flops(AttentionShape call, Direction direction) {
  constexpr int64_t queries_per_group = 16;
  call.key_lengths = call.query_starts = call.key_starts = nullptr;  // in the memory of the device
  int64_t pairs_of_head = 0;
  for (int64_t begin = 0; begin < call.Tq; begin += queries_per_group) {
    const int64_t end = std::min(begin + queries_per_group, call.Tq);
    pairs_of_head += (end - begin) * call.num_keys_before(0, end);
  }
  return flops_of_pairs(call.B * call.H * pairs_of_head, call, direction);
}

}  // namespace heed::kernel
