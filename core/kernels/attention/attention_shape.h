// Extents of a call to attention, and which pairs of queries and keys it has: for the CPU's tiles and the
// device's alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/attention.h"
#include "core/kernels/dropout.h"
#include "core/share.h"

namespace heed::kernel {

inline constexpr double log2_e = 1.4426950408889634074;
inline constexpr double ln_2 = 0.69314718055994530942;

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// The log of a row's sum of exponentials, as backward passes find it. Where that is large, rounding it to
/// one number loses what the sum adds to the largest score, and all weights of the row with it: so what is
/// lost is kept beside it. Below `one_is_enough` nothing is.
template <class T>
struct RowLog {
  static constexpr T one_is_enough = T(256);
  T log;       ///< natural
  T rest = 0;  ///< in units of log2: what is to be added to log times log2 e

  /// Of a row whose largest score is `most`, with the sum `total` of weights relative to it; both logs
  /// base 2.
  HEED_BOTH static RowLog of(T most, T log2_total) {
    const T log = (most + log2_total) * static_cast<T>(ln_2);
    if (!(log > one_is_enough || log < -one_is_enough) || log - log != T(0)) return {log};
    return {log, (most - RowLog{log}.exponent()) + log2_total};
  }
  /// What weights are relative to, in units of log2, and the share of their row that they are then to be
  /// multiplied by: a weight is 2^(score - base) share.
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
    // Were the product fused with what is done to it, it would be another number each time.
    const volatile T rounded = log * static_cast<T>(log2_e);
    return rounded;
  }
  HEED_BOTH static RowLog nothing() { return {-std::numeric_limits<T>::infinity()}; }
};

/// Two sets of keys of one row: each one's share of their sum, and the log of that.
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

/// Where the logs of rows are kept: [B, H, Tq], or [2, B, H, Tq] with what they lost behind them.
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
  uint64_t first_element;                ///< what the first pair draws: see core/share.h

  AttentionShape(const Tensor& q, const Tensor& k, const Tensor& v)
      : B(q.extent(0)),
        H(q.extent(1)),
        group(std::max<int64_t>(1, q.extent(1) / std::max<int64_t>(k.extent(1), 1))),
        Tq(q.extent(2)),
        Tk(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        first_element(skipped_draws(B * H * Tq * Tk)) {}

  /// Keys that batch row b has.
  HEED_BOTH int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? Tk : within(key_lengths[b] - first_key, 0, Tk);
  }
  /// Keys that some query before `end` sees.
  HEED_BOTH int64_t keys_before(int64_t b, int64_t end) const {
    const int64_t keys = keys_of(b);
    return causal ? within(end + first_query, 0, keys) : keys;
  }
  /// The first query that sees key j.
  HEED_BOTH int64_t first_of(int64_t j) const { return causal ? within(j - first_query, 0, Tq) : 0; }
  /// Query i sees key j, if that is there.
  HEED_BOTH bool sees(int64_t i, int64_t j) const { return !causal || j <= i + first_query; }
  /// The number that the pair of query i and key j draws.
  HEED_BOTH uint64_t element(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return first_element + static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk + j);
  }
  /// Where the relative bias of the pair lies.
  HEED_BOTH int64_t diagonal(int64_t h, int64_t i, int64_t j) const {
    return h * (Tq + Tk - 1) + i - j + Tk - 1;
  }
};

/// What a call does to the scores of its pairs. Scores are in units of log2, so that a weight is one exp2.
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

  AttentionScores(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms)
      : AttentionShape(q, k, v),
        scale(static_cast<T>(terms.scale)),
        bias(terms.bias ? terms.bias.template data<T>() : nullptr),
        relative(terms.relative ? terms.relative.template data<T>() : nullptr),
        sink(terms.sink ? terms.sink.template data<T>() : nullptr),
        cap(static_cast<T>(terms.softcap * log2_e)),
        dropped(dropout_threshold(terms.dropout) > 0),
        keep_scale(static_cast<T>(dropout_scale(terms.dropout))) {
    causal = terms.causal;
    first_query = terms.first_query;
    key_lengths = terms.key_lengths ? terms.key_lengths.template data<int32_t>() : nullptr;
    for (int64_t axis = 0; bias != nullptr && axis < 4; ++axis) {
      bias_stride[axis] = terms.bias.extent(axis) == 1 ? 0 : terms.bias.strides()[axis];
    }
  }

  HEED_BOTH T factor() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
  HEED_BOTH bool added() const { return bias != nullptr || relative != nullptr; }
  HEED_BOTH const T* bias_at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return bias + b * bias_stride[0] + h * bias_stride[1] + i * bias_stride[2] + j * bias_stride[3];
  }
  /// What is added to the scores of key j and the queries from i on.
  HEED_BOTH const T* relative_at(int64_t h, int64_t i, int64_t j) const {
    return relative + diagonal(h, i, j);
  }
  HEED_BOTH T sink_of(int64_t h) const {
    return sink == nullptr ? -infinity<T> : sink[h] * static_cast<T>(log2_e);
  }
};

/// Operations of a call: two for each multiply-add of the pairs, forward or back. Pairs are counted in rows
/// of 16 queries, as the CPU's tiles have them; key lengths are left out where they lie on a device.
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
