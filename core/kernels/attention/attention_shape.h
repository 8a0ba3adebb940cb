// The extents of an attention call and which pairs (query, key) it has, for the CPU and the device.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/elementwise/dropout.h"

namespace heed::kernel {

inline constexpr double log2_e = 1.4426950408889634074;
inline constexpr double ln_2 = 0.69314718055994530942;

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// The log of a row's sum of exponentials, for the backward pass. One rounded number is not precise enough
/// for large scores: the weights 2^(score - log) would be wrong. `rest` keeps what rounding lost; below
/// `one_is_enough` it is zero.
template <class T>
struct RowLog {
  static constexpr T one_is_enough = T(256);
  T log;       ///< natural
  T rest = 0;  ///< in units of log2: to be added to log * log2(e)

  /// From a row's largest score and the log of its sum of weights relative to that score, both in base 2.
  HEED_BOTH static RowLog of(T most, T log2_total) {
    const T log = (most + log2_total) * static_cast<T>(ln_2);
    if (!(log > one_is_enough || log < -one_is_enough) || log - log != T(0)) return {log};
    return {log, (most - RowLog{log}.exponent()) + log2_total};
  }
  /// A weight of the row is share * 2^(score - base).
  struct Base {
    T base, share;
  };
  HEED_BOTH Base split() const {
    const T all = exponent();
    if (rest == T(0)) return {all, T(1)};
    const T base = all + rest;
    return {base, std::exp2((base - all) - rest)};
  }
  /// The log in units of log2, without the rest.
  HEED_BOTH T exponent() const {
    // volatile: fused into a following sum, the product would round differently in each place.
    const volatile T rounded = log * static_cast<T>(log2_e);
    return rounded;
  }
  HEED_BOTH static RowLog of_no_keys() { return {-std::numeric_limits<T>::infinity()}; }
};

/// Joins two sets of keys of one query: the share of each in the joint sum, and the log of that sum.
template <class T>
struct JoinedRows {
  T first, second;  ///< to be divided by `total`
  T total;
  RowLog<T> log;

  HEED_BOTH JoinedRows(const RowLog<T>& a, const RowLog<T>& b) {
    if (a.rest == T(0) && b.rest == T(0)) {
      const T top = a.log > b.log ? a.log : b.log;
      first = std::exp(a.log - top);
      second = std::exp(b.log - top);
      total = first + second;
      log = {top + std::log(total)};
      return;
    }
    const T apart = (b.exponent() - a.exponent()) + (b.rest - a.rest);
    const RowLog<T>& top = apart > T(0) ? b : a;
    first = apart > T(0) ? std::exp2(-apart) : T(1);
    second = apart > T(0) ? T(1) : std::exp2(apart);
    total = first + second;
    log = RowLog<T>::of(top.exponent(), top.rest + std::log2(total));
  }
};

/// The logs of all rows: [B, H, Tq], or [2, B, H, Tq] with the rests in the second half.
template <class T>
struct RowLogs {
  T* log = nullptr;
  T* rest = nullptr;  ///< null: not kept

  RowLogs() = default;
  RowLogs(const Tensor& lse, int64_t rows)
      : log(lse.data<T>()), rest(lse.size() == 2 * rows && rows > 0 ? lse.data<T>() + rows : nullptr) {}
  HEED_BOTH RowLogs from(int64_t row) const {
    RowLogs out = *this;
    out.log += row;
    if (out.rest != nullptr) out.rest += row;
    return out;
  }
  HEED_BOTH RowLog<T> at(int64_t row) const { return {log[row], rest == nullptr ? T(0) : rest[row]}; }
  HEED_BOTH void put(int64_t row, const RowLog<T>& x) const {
    log[row] = x.log;
    if (rest != nullptr) rest[row] = x.rest;
  }
};

HEED_BOTH inline int64_t within(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/// q [B, H, Tq, d], k [B, H / group, Tk, d], v [B, H / group, Tk, dv].
struct AttentionShape {
  int64_t B, H, group, Tq, Tk, d, dv;  ///< group: query heads that share keys
  bool causal = false;
  int64_t first_query = 0;
  const int32_t* key_lengths = nullptr;  ///< [B], where the tensors are; null: all keys are there
  int64_t first_key = 0;                 ///< what key 0 is to the lengths
  uint64_t first_element;                ///< random number of the first pair: see
                                         ///< core/distributed/batch_shard.h

  AttentionShape(const Tensor& q, const Tensor& k, const Tensor& v)
      : B(q.extent(0)),
        H(q.extent(1)),
        group(std::max<int64_t>(1, q.extent(1) / std::max<int64_t>(k.extent(1), 1))),
        Tq(q.extent(2)),
        Tk(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        first_element(skipped_draws(B * H * Tq * Tk)) {}

  /// Number of keys of batch row b.
  HEED_BOTH int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? Tk : within(key_lengths[b] - first_key, 0, Tk);
  }
  /// Number of keys that some query before `end` sees.
  HEED_BOTH int64_t keys_before(int64_t b, int64_t end) const {
    const int64_t keys = keys_of(b);
    return causal ? within(end + first_query, 0, keys) : keys;
  }
  /// The first query that sees key j.
  HEED_BOTH int64_t first_of(int64_t j) const { return causal ? within(j - first_query, 0, Tq) : 0; }
  /// True where query i may see key j, which must be below keys_of().
  HEED_BOTH bool sees(int64_t i, int64_t j) const { return !causal || j <= i + first_query; }
  /// Index of the random number of the pair (i, j).
  HEED_BOTH uint64_t element(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return first_element + static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk + j);
  }
  /// Index of the pair's relative bias.
  HEED_BOTH int64_t diagonal(int64_t h, int64_t i, int64_t j) const {
    return h * (Tq + Tk - 1) + i - j + Tk - 1;
  }
};

/// What a call does to its scores. Scores are in units of log2, so each weight costs one exp2.
template <class T>
struct AttentionScores : AttentionShape {
  T scale;
  const T* bias;
  int64_t bias_stride[4] = {0, 0, 0, 0};
  const T* relative;
  const T* sink;
  T cap;
  bool dropped;
  T keep_scale;

  AttentionScores(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params)
      : AttentionShape(q, k, v),
        scale(static_cast<T>(params.scale)),
        bias(params.bias ? params.bias.template data<T>() : nullptr),
        relative(params.relative ? params.relative.template data<T>() : nullptr),
        sink(params.sink ? params.sink.template data<T>() : nullptr),
        cap(static_cast<T>(params.softcap * log2_e)),
        dropped(dropout_threshold(params.dropout) > 0),
        keep_scale(static_cast<T>(dropout_scale(params.dropout))) {
    causal = params.causal;
    first_query = params.first_query;
    key_lengths = params.key_lengths ? params.key_lengths.template data<int32_t>() : nullptr;
    for (int64_t axis = 0; bias != nullptr && axis < 4; ++axis) {
      bias_stride[axis] = params.bias.extent(axis) == 1 ? 0 : params.bias.strides()[axis];
    }
  }

  HEED_BOTH T scale_log2() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
  HEED_BOTH bool added() const { return bias != nullptr || relative != nullptr; }
  HEED_BOTH const T* bias_at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return bias + b * bias_stride[0] + h * bias_stride[1] + i * bias_stride[2] + j * bias_stride[3];
  }
  /// The relative bias of key j and the queries from i on.
  HEED_BOTH const T* relative_at(int64_t h, int64_t i, int64_t j) const {
    return relative + diagonal(h, i, j);
  }
  HEED_BOTH T sink_of(int64_t h) const {
    return sink == nullptr ? -infinity<T> : sink[h] * static_cast<T>(log2_e);
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
    pairs += (end - i) * all.keys_before(0, end);
  }
  return 2 * x.B * x.H * pairs * (back ? 3 * x.d + 2 * x.dv : x.d + x.dv);
}

}  // namespace heed::kernel
