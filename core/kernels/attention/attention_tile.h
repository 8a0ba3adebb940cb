// The forward pass of one tile of up to 64 queries against tiles of keys, for dense and for pattern
// attention. Scores are stored transposed, [key, query]: a vector then holds the scores of many queries with
// one key, the softmax needs no reduction inside a vector, and q, k, v and dout enter every product in their
// own layout. Scores are in units of log2, so each weight costs one exp2.
#pragma once

#include <algorithm>

#include "heed/core/kernels/attention/attention_shape.h"
#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/attention/tile_mask.h"
#include "heed/core/kernels/gemm/small_gemm.h"
#include "heed/core/score_formula.h"

namespace heed::kernel {

/// Sums as rows of a matrix, `ld` elements apart.
template <class T>
struct SumRows {
  T* data;
  int64_t ld;

  T* row(int64_t index) const { return data + index * ld; }
};

/// One bit for each pair (query, key) of a tile, [64, 64].
template <class T>
struct PairBits {
  static constexpr int64_t bits = 8 * static_cast<int64_t>(sizeof(T));  ///< number of bits of a word
  alignas(64) simd::Word<T> words[tile / bits][tile];                   ///< [keys / bits, queries]

  /// Sets the bits of a query: bit j of `key_bits` belongs to key j.
  void set(int64_t query, uint64_t key_bits) {
    for (int64_t w = 0; w < tile / bits; ++w)
      words[w][query] = static_cast<simd::Word<T>>(key_bits >> (w * bits % 64));
  }
  /// Sets the bits of queries 0 to count - 1: bit first_key + j of key_bits[query] belongs to key j.
  void set_all(const uint64_t* key_bits, int64_t count, int64_t first_key) {
    for (int64_t w = 0; w < tile / bits; ++w) {
      for (int64_t i = 0; i < count; ++i)
        words[w][i] = static_cast<simd::Word<T>>(key_bits[i] >> first_key >> (w * bits % 64));
    }
  }
  /// Vector over the queries from `query` on: `if_set` where the bit of key j is set, else `if_clear`.
  simd::Vector<T> select(int64_t j, int64_t query, simd::Vector<T> if_set, simd::Vector<T> if_clear) const {
    const simd::Words<T> word = simd::load_words<T>(&words[j / bits][query]);
    return (word & (simd::Word<T>{1} << (j % bits))) != 0 ? if_set : if_clear;
  }
};

/// A word whose lowest `count` bits are set.
inline uint64_t low_bits(int64_t count) {
  return count <= 0 ? 0 : count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// Softcap, bias, mask, dropout and formula of a tile of queries and a tile of keys.
template <class T>
struct ScoreModifiers {
  const PairBits<T>* visible = nullptr;    ///< pairs that the mask leaves; null: all
  const PairBits<T>* keep_mask = nullptr;  ///< pairs that dropout keeps; null: all
  T keep_scale = 1;
  const T* bias = nullptr;                ///< [keys, padded queries], in log2 units; null: none
  T softcap = 0;                          ///< in log2 units; 0: none
  const ScoreFormula* formula = nullptr;  ///< comes before all others; null: none
  PairBlock pairs = {};                   ///< tells the formula which pairs the tile has
  T* slopes = nullptr;                    ///< [64, 64], for the derivatives of the formula

  bool changes_scores() const { return visible != nullptr || bias != nullptr || softcap != 0; }
  /// Applies the formula, if there is one, to the scores [keys, padded queries] of a tile, in log2 units, and
  /// writes its derivatives to slopes_out, laid out as the scores; null: nowhere.
  void apply_formula(const TileMask& tile_mask, T* scores, int64_t padded_queries, T* slopes_out) const {
    if (formula == nullptr) return;
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      const int64_t first_pair = r.key_begin * padded_queries + r.query_begin;
      PairBlock block = pairs;
      block.first_query += r.query_begin;
      block.queries = r.query_end - r.query_begin;
      block.first_key += r.key_begin;
      block.keys = r.key_end - r.key_begin;
      formula->apply(ScoreBlock<T>{.pairs = block,
                                   .scores = scores + first_pair,
                                   .key_stride = padded_queries,
                                   .unit = static_cast<T>(ln_2),
                                   .slopes = slopes_out == nullptr ? nullptr : slopes_out + first_pair});
    });
  }
};

/// tanh(x) by one exp2. Its absolute error is that of one rounding, which is enough for a softcap.
template <class T>
simd::Vector<T> fast_tanh(simd::Vector<T> x) {
  const simd::Vector<T> high = simd::splat(T(15)), low = simd::splat(T(-15));
  x = x > high ? high : x < low ? low : x;
  return T(1) - T(2) / (T(1) + simd::exp2<T>(x * static_cast<T>(2 * log2_e)));
}

/// Scores of key j with the queries from `query` on, after softcap, bias and mask.
template <class T>
simd::Vector<T> modified_score(simd::Vector<T> score, const ScoreModifiers<T>& modifiers, int64_t j,
                               int64_t query, int64_t padded_queries) {
  if (modifiers.softcap != 0) score = modifiers.softcap * fast_tanh<T>(score / modifiers.softcap);
  if (modifiers.bias != nullptr) score += simd::load(modifiers.bias + j * padded_queries + query);
  if (modifiers.visible != nullptr)
    score = modifiers.visible->select(j, query, score, simd::splat(minus_infinity<T>));
  return score;
}

/// The forward pass of one tile of queries, out_i = sum_j softmax_j(score_ij) v_j, by an online softmax over
/// tiles of keys. Usage: start(), add_keys() for each tile of keys, finish().
template <class T>
class ForwardTile {
 public:
  /// Number of elements of the working memory.
  static int64_t scratch_size(int64_t d, int64_t dv) {
    return BumpAllocator<T>::rounded(d * tile) + tile * tile +
           2 * BumpAllocator<T>::rounded(tile * simd::padded<T>(dv)) + 3 * tile;
  }
  ForwardTile(T* memory, int64_t d, int64_t dv) : d_(d), dv_(dv), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_transposed_ = arena.take(d * tile);
    scores_ = arena.take(tile * tile);
    output_sum_ = arena.take(tile * padded_dv_);
    values_ = arena.take(tile * padded_dv_);
    row_max_ = arena.take(tile);
    row_sum_ = arena.take(tile);
    correction_ = arena.take(tile);
  }

  /// Begins with queries q [queries, d], rows ldq apart. `scale_log2` is the scale times log2(e), `sink` a
  /// score in log2 units that every row begins with; -inf: none.
  void start(const T* q, int64_t ldq, int64_t queries, T scale_log2, T sink) {
    queries_ = queries;
    padded_queries_ = simd::padded<T>(queries);
    simd::scaled_transpose(q, ldq, queries, d_, scale_log2, q_transposed_, padded_queries_);
    std::fill_n(output_sum_, queries * padded_dv_, T(0));
    std::fill_n(row_max_, padded_queries_, sink);
    std::fill_n(row_sum_, padded_queries_, sink == minus_infinity<T> ? T(0) : T(1));
    is_first_step_ = true;
  }

  /// Continues, after start(), from the output [queries, dv] and log-sum-exps of these queries over earlier
  /// keys.
  void resume(const T* out, int64_t ldo, const LseView<T>& lse) {
    for (int64_t i = 0; i < queries_; ++i) {
      const RowLse<T> earlier = lse.at(i);
      const auto [base, factor] = earlier.weight_base();
      const T total = T(1) / factor;
      simd::scaled(out + i * ldo, dv_, total, output_sum_ + i * padded_dv_);
      row_max_[i] = base;
      row_sum_[i] = earlier.log == minus_infinity<T> ? T(0) : total;
    }
    is_first_step_ = false;
  }

  /// Adds one tile of keys k [keys, d] with values v [keys, dv]. Returns the number of operations.
  int64_t add_keys(const T* k, int64_t ldk, const T* v, int64_t ldv, const TileMask& tile_mask,
                   const ScoreModifiers<T>& modifiers) {
    if (tile_mask.count == 0) return 0;
    int64_t flops = 0;
    // scores [keys, queries] = k q^T.
    tile_mask.each_by_keys([&](const TileMask::Rectangle& r) {
      flops +=
          small_gemm(Left::row_major, r.key_end - r.key_begin, simd::padded<T>(r.query_end - r.query_begin),
                     d_, k + r.key_begin * ldk, ldk, q_transposed_ + r.query_begin, padded_queries_,
                     scores_ + r.key_begin * padded_queries_ + r.query_begin, padded_queries_, /*add=*/false);
    });
    modifiers.apply_formula(tile_mask, scores_, padded_queries_, nullptr);
    const bool has_dropout = modifiers.keep_mask != nullptr;
    if (modifiers.changes_scores()) {
      has_dropout ? scores_to_weights<true, true>(tile_mask, modifiers)
                  : scores_to_weights<true, false>(tile_mask, modifiers);
    } else {
      has_dropout ? scores_to_weights<false, true>(tile_mask, modifiers)
                  : scores_to_weights<false, false>(tile_mask, modifiers);
    }
    if (!is_first_step_) rescale_sums();
    is_first_step_ = false;
    // output_sum [queries, dv] += weights v.
    const T* weights = scores_;  // scores_to_weights() wrote them in place
    const Rows<T> values = whole_rows(v, ldv, tile_mask.key_end(), dv_, values_);
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      flops += small_gemm(Left::transposed, r.query_end - r.query_begin, padded_dv_, r.key_end - r.key_begin,
                          weights + r.key_begin * padded_queries_ + r.query_begin, padded_queries_,
                          values.data + r.key_begin * values.ld, values.ld,
                          output_sum_ + r.query_begin * padded_dv_, padded_dv_, /*add=*/true);
    });
    return flops;
  }

  /// Writes out [queries, dv] = output_sum / row_sum, and the log-sum-exp of each query.
  void finish(T* out, int64_t ldo, const LseView<T>& lse) const {
    alignas(64) T inverse[tile], log2_row_sum[tile];
    for (int64_t query = 0; query < padded_queries_; query += lanes) {
      const V total = simd::load(row_sum_ + query);
      simd::store(log2_row_sum + query, simd::log2<T>(total));
      simd::store(inverse + query, total == 0 ? V{} : T(1) / total);
    }
    for (int64_t i = 0; i < queries_; ++i) {
      simd::scaled(output_sum_ + i * padded_dv_, dv_, inverse[i], out + i * ldo);
      lse.put(i,
              row_sum_[i] == T(0) ? RowLse<T>::of_empty_row() : RowLse<T>::of(row_max_[i], log2_row_sum[i]));
    }
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int64_t lanes = simd::Lanes<T>::count;

  /// Replaces the scores s [keys, queries] in place by weights 2^(s - row_max) after dropout, and updates the
  /// running maximum and sum of each query (online softmax). correction_ [queries] becomes the factor of
  /// older sums. Vector lanes are queries.
  template <bool changes_scores, bool has_dropout>
  void scores_to_weights(const TileMask& tile_mask, const ScoreModifiers<T>& modifiers) {
    std::fill_n(correction_, padded_queries_, T(1));
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      for (int64_t query = r.query_begin; query < r.query_end; query += lanes) {
        T* scores = scores_ + query;  // those of key j are at scores + j padded_queries
        const V old_max = simd::load(row_max_ + query);
        V partial_max[4] = {old_max, old_max, old_max, old_max};
        const auto update_max = [&](int64_t j, V& max_score) {
          V score = simd::load(scores + j * padded_queries_);
          if constexpr (changes_scores) {
            score = modified_score<T>(score, modifiers, j, query, padded_queries_);
            simd::store(scores + j * padded_queries_, score);
          }
          max_score = score > max_score ? score : max_score;
        };
        int64_t j = r.key_begin;
        for (; j + 4 <= r.key_end; j += 4) {
          for (int64_t p = 0; p < 4; ++p) update_max(j + p, partial_max[p]);
        }
        for (; j < r.key_end; ++j) update_max(j, partial_max[0]);
        const auto larger = [](V a, V b) -> V { return a > b ? a : b; };
        const V new_max =
            larger(larger(partial_max[0], partial_max[1]), larger(partial_max[2], partial_max[3]));
        // No visible key yet: 2^-inf = 0 instead of NaN.
        const V base = new_max == simd::splat(minus_infinity<T>) ? V{} : new_max;
        V partial_sum[2] = {V{}, V{}};
        const auto make_weight = [&](int64_t key, V& sum) {
          V weight = simd::exp2<T>(simd::load(scores + key * padded_queries_) - base);
          sum += weight;
          if constexpr (has_dropout)
            weight = modifiers.keep_mask->select(key, query, weight * modifiers.keep_scale, V{});
          simd::store(scores + key * padded_queries_, weight);
        };
        for (j = r.key_begin; j + 2 <= r.key_end; j += 2) {
          make_weight(j, partial_sum[0]);
          make_weight(j + 1, partial_sum[1]);
        }
        if (j < r.key_end) make_weight(j, partial_sum[0]);
        const V correction = simd::exp2<T>(old_max - base);
        simd::store(correction_ + query, correction);
        simd::store(row_sum_ + query,
                    simd::load(row_sum_ + query) * correction + (partial_sum[0] + partial_sum[1]));
        simd::store(row_max_ + query, new_max);
      }
    });
  }

  /// output_sum [queries, dv] *= correction of each query.
  void rescale_sums() {
    for (int64_t i = 0; i < queries_; ++i) {
      T* row = output_sum_ + i * padded_dv_;
      if (correction_[i] != T(1)) simd::scaled(row, padded_dv_, correction_[i], row);
    }
  }

  int64_t d_, dv_, padded_dv_;
  int64_t queries_ = 0, padded_queries_ = 0;
  bool is_first_step_ = true;
  T *q_transposed_, *scores_, *output_sum_, *values_, *row_max_, *row_sum_, *correction_;
};

}  // namespace heed::kernel
