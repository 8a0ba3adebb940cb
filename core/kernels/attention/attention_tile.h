// The forward pass of one tile of queries [<= 64] against tiles of keys, for dense and for pattern attention.
// Scores are stored transposed, [key, query]: a vector then holds the scores of many queries with one key,
// the softmax needs no reduction inside a vector, and q, k, v and dout enter every product in their own
// layout. Scores are in units of log2, so each weight costs one exp2.
#pragma once

#include <algorithm>
#include <limits>

#include "heed/core/kernels/attention/attention_shape.h"
#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/attention/tile_mask.h"
#include "heed/core/kernels/gemm/small_gemm.h"

namespace heed::kernel {

/// Rows that a kernel adds to, `ld` elements apart.
template <class T>
struct SumRows {
  T* data;
  int64_t ld;

  T* row(int64_t index) const { return data + index * ld; }
};

/// One bit for each pair (query, key) of a tile, [64, 64].
template <class T>
struct PairBits {
  static constexpr int64_t bits = 8 * static_cast<int64_t>(sizeof(T));
  alignas(64) simd::Word<T> words[tile / bits][tile];

  /// Bit j of `keys` belongs to the pair of this query and key j.
  void set(int64_t query, uint64_t keys) {
    for (int64_t w = 0; w < tile / bits; ++w)
      words[w][query] = static_cast<simd::Word<T>>(keys >> (w * bits % 64));
  }
  /// The same for queries 0 to count - 1, one word each, whose bit `first` becomes bit 0.
  void set_all(const uint64_t* keys, int64_t count, int64_t first) {
    for (int64_t w = 0; w < tile / bits; ++w) {
      for (int64_t i = 0; i < count; ++i)
        words[w][i] = static_cast<simd::Word<T>>(keys[i] >> first >> (w * bits % 64));
    }
  }
  /// `x` where the bit of key j is set, `otherwise` elsewhere; for the queries from `lane` on.
  simd::Vector<T> select(int64_t j, int64_t lane, simd::Vector<T> x, simd::Vector<T> otherwise) const {
    const simd::Words<T> word = simd::load_words<T>(&words[j / bits][lane]);
    return (word & (simd::Word<T>{1} << (j % bits))) != 0 ? x : otherwise;
  }
};

/// The lowest `count` bits.
inline uint64_t low_bits(int64_t count) {
  return count <= 0 ? 0 : count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// What a step applies between the plain scores and the weights: softcap, bias, mask and dropout.
template <class T>
struct ScoreModifiers {
  const PairBits<T>* visible = nullptr;    ///< pairs that exist; null: all
  const PairBits<T>* keep_mask = nullptr;  ///< pairs that dropout keeps; null: all
  T keep_scale = 1;
  const T* bias = nullptr;  ///< [key, query] as the scores, in log2 units; null: none
  T cap = 0;                ///< of the scores, in log2 units; 0: none

  bool masked() const { return visible != nullptr || bias != nullptr || cap != 0; }
};

/// tanh(x) by one exp2, with the absolute error of one rounding: a capped score needs no more.
template <class T>
simd::Vector<T> bounded(simd::Vector<T> x) {
  const simd::Vector<T> high = simd::splat(T(15)), low = simd::splat(T(-15));
  x = x > high ? high : x < low ? low : x;
  return T(1) - T(2) / (T(1) + simd::exp2<T>(x * static_cast<T>(2 * log2_e)));
}

/// The forward pass of one tile of queries. Usage: start(), keys() for each tile of keys, finish().
template <class T>
class ForwardTile {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return BumpAllocator<T>::rounded(d * tile) + tile * tile +
           2 * BumpAllocator<T>::rounded(tile * simd::padded<T>(dv)) + 3 * tile;
  }
  ForwardTile(T* memory, int64_t d, int64_t dv) : d_(d), dv_(dv), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_transposed_ = arena.take(d * tile);
    scores_ = arena.take(tile * tile);
    sum_ = arena.take(tile * padded_dv_);
    values_ = arena.take(tile * padded_dv_);
    max_score_ = arena.take(tile);
    weight_sum_ = arena.take(tile);
    correction_ = arena.take(tile);
  }

  /// Takes q [queries, d], rows ldq apart. `scale_log2` is the scale times log2(e). `sink` is a score in log2
  /// units that every row begins with; -inf: none.
  void start(const T* q, int64_t ldq, int64_t queries, T scale_log2,
             T sink = -std::numeric_limits<T>::infinity()) {
    queries_ = queries;
    padded_queries_ = simd::padded<T>(queries);
    simd::scaled_transpose(q, ldq, queries, d_, scale_log2, q_transposed_, padded_queries_);
    std::fill_n(sum_, queries * padded_dv_, T(0));
    std::fill_n(max_score_, padded_queries_, sink);
    std::fill_n(weight_sum_, padded_queries_, sink == -std::numeric_limits<T>::infinity() ? T(0) : T(1));
    is_first_step_ = true;
  }

  /// After start(): continues from the output [queries, dv] and log sums that earlier keys gave the same
  /// queries.
  void resume(const T* out, int64_t ldo, const RowLogs<T>& lse) {
    constexpr T minus_infinity = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < queries_; ++i) {
      const RowLog<T> before = lse.at(i);
      const auto [base, share] = before.split();
      const T total = T(1) / share;
      simd::scaled(out + i * ldo, dv_, total, sum_ + i * padded_dv_);
      max_score_[i] = base;
      weight_sum_[i] = before.log == minus_infinity ? T(0) : total;
    }
    is_first_step_ = false;
  }

  /// Adds one tile of keys; k [keys, d] and v [keys, dv] point at its first key. Returns the operations done.
  int64_t keys(const T* k, int64_t ldk, const T* v, int64_t ldv, const TileMask& tile_mask,
               const ScoreModifiers<T>& modifiers) {
    if (tile_mask.steps == 0) return 0;
    int64_t flops = 0;
    tile_mask.each_rectangle([&](const TileMask::Step& s) {
      flops += small_gemm(Left::row_major, s.high - s.low, lanes_of(s), d_, k + s.low * ldk, ldk,
                          q_transposed_ + s.from, padded_queries_, scores_ + s.low * padded_queries_ + s.from,
                          padded_queries_, false);
    });
    if (modifiers.masked()) {
      modifiers.keep_mask != nullptr ? scores_to_weights<true, true>(tile_mask, modifiers)
                                     : scores_to_weights<true, false>(tile_mask, modifiers);
    } else {
      modifiers.keep_mask != nullptr ? scores_to_weights<false, true>(tile_mask, modifiers)
                                     : scores_to_weights<false, false>(tile_mask, modifiers);
    }
    if (!is_first_step_) rescale_sums();
    is_first_step_ = false;
    const Rows<T> values = whole_rows(v, ldv, tile_mask.end(), dv_, values_);
    tile_mask.each([&](const TileMask::Step& s) {
      flops += small_gemm(Left::transposed, s.to - s.from, padded_dv_, s.high - s.low,
                          scores_ + s.low * padded_queries_ + s.from, padded_queries_,
                          values.data + s.low * values.ld, values.ld, sum_ + s.from * padded_dv_, padded_dv_,
                          true);
    });
    return flops;
  }

  /// Writes out [queries, dv] and the log of each query's sum.
  void finish(T* out, int64_t ldo, const RowLogs<T>& lse) const {
    alignas(64) T inverse[tile], logs[tile];
    for (int64_t lane = 0; lane < padded_queries_; lane += lanes) {
      const V total = simd::load(weight_sum_ + lane);
      simd::store(logs + lane, simd::log2<T>(total));
      simd::store(inverse + lane, total == 0 ? V{} : T(1) / total);
    }
    for (int64_t i = 0; i < queries_; ++i) {
      simd::scaled(sum_ + i * padded_dv_, dv_, inverse[i], out + i * ldo);
      lse.put(i, weight_sum_[i] == T(0) ? RowLog<T>::of_no_keys() : RowLog<T>::of(max_score_[i], logs[i]));
    }
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int64_t lanes = simd::Lanes<T>::count;
  static int64_t lanes_of(const TileMask::Step& s) { return simd::padded<T>(s.to - s.from); }

  /// Replaces the scores [keys, queries] by weights and updates the running maximum and sum of each query
  /// (online softmax). correction_ [queries] is what older sums must be multiplied by.
  template <bool masked, bool dropped>
  void scores_to_weights(const TileMask& tile_mask, const ScoreModifiers<T>& modifiers) {
    const V minus_infinity = simd::splat(-std::numeric_limits<T>::infinity());
    std::fill_n(correction_, padded_queries_, T(1));
    tile_mask.each([&](const TileMask::Step& s) {
      for (int64_t lane = s.from; lane < s.to; lane += lanes) {
        T* column = scores_ + lane;
        const V before = simd::load(max_score_ + lane);
        V part[4] = {before, before, before, before};
        const auto update_max = [&](int64_t j, V& max_score) {
          V score = simd::load(column + j * padded_queries_);
          if constexpr (masked) {
            if (modifiers.cap != 0) score = modifiers.cap * bounded<T>(score / modifiers.cap);
            if (modifiers.bias != nullptr) score += simd::load(modifiers.bias + j * padded_queries_ + lane);
            if (modifiers.visible != nullptr)
              score = modifiers.visible->select(j, lane, score, minus_infinity);
            simd::store(column + j * padded_queries_, score);
          }
          max_score = score > max_score ? score : max_score;
        };
        int64_t j = s.low;
        for (; j + 4 <= s.high; j += 4) {
          for (int64_t p = 0; p < 4; ++p) update_max(j + p, part[p]);
        }
        for (; j < s.high; ++j) update_max(j, part[0]);
        const V left = part[0] > part[1] ? part[0] : part[1], right = part[2] > part[3] ? part[2] : part[3];
        const V max_score = left > right ? left : right;
        const V base =
            max_score == minus_infinity ? V{} : max_score;  // no visible key yet: 2^-inf = 0 instead of NaN
        V total[2] = {V{}, V{}};
        const auto weight = [&](int64_t at, V& sum) {
          V p = simd::exp2<T>(simd::load(column + at * padded_queries_) - base);
          sum += p;
          if constexpr (dropped) p = modifiers.keep_mask->select(at, lane, p * modifiers.keep_scale, V{});
          simd::store(column + at * padded_queries_, p);
        };
        for (j = s.low; j + 2 <= s.high; j += 2) {
          weight(j, total[0]);
          weight(j + 1, total[1]);
        }
        if (j < s.high) weight(j, total[0]);
        const V correction = simd::exp2<T>(before - base);
        simd::store(correction_ + lane, correction);
        simd::store(weight_sum_ + lane, simd::load(weight_sum_ + lane) * correction + (total[0] + total[1]));
        simd::store(max_score_ + lane, max_score);
      }
    });
  }

  void rescale_sums() {
    for (int64_t i = 0; i < queries_; ++i) {
      if (correction_[i] == T(1)) continue;
      for (int64_t c = 0; c < padded_dv_; c += lanes) {
        simd::store(sum_ + i * padded_dv_ + c, simd::load(sum_ + i * padded_dv_ + c) * correction_[i]);
      }
    }
  }

  int64_t d_, dv_, padded_dv_;
  int64_t queries_ = 0, padded_queries_ = 0;
  bool is_first_step_ = true;
  T *q_transposed_, *scores_, *sum_, *values_, *max_score_, *weight_sum_, *correction_;
};

}  // namespace heed::kernel
