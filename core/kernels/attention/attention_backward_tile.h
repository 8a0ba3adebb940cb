// The backward pass of one tile of up to 64 queries against tiles of keys: gradients of q, k and v.
#pragma once

#include "heed/core/kernels/attention/attention_tile.h"

namespace heed::kernel {

/// The backward pass of one tile of queries. With p the weights, dout the gradient of the output and delta =
/// dout . out:
///
///   dv_j += sum_i p_ij dout_i;  ds_ij = p_ij (dout_i . v_j - delta_i)
///   dk_j += sum_i ds_ij q_i;    dq_i += sum_j ds_ij k_j
///
/// The caller owns the sums of dk [keys, padded d] and dv [keys, padded dv], which start at zero. Usage:
/// start(), add_keys() for each tile of keys, finish().
template <class T>
class BackwardTile {
 public:
  /// Number of elements of the working memory.
  static int64_t scratch_size(int64_t d, int64_t dv) {
    const int64_t padded_d = tile * simd::padded<T>(d), padded_dv = tile * simd::padded<T>(dv);
    return BumpAllocator<T>::rounded(d * tile) + BumpAllocator<T>::rounded(dv * tile) + 2 * tile * tile +
           2 * BumpAllocator<T>::rounded(padded_d) + BumpAllocator<T>::rounded(padded_dv) + 2 * tile;
  }
  BackwardTile(T* memory, int64_t d, int64_t dv)
      : d_(d), dv_(dv), padded_d_(simd::padded<T>(d)), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_transposed_ = arena.take(d * tile);
    dout_transposed_ = arena.take(dv * tile);
    weights_ = arena.take(tile * tile);
    grad_scores_ = arena.take(tile * tile);
    q_copy_ = arena.take(tile * padded_d_);
    dq_sum_ = arena.take(tile * padded_d_);
    dout_copy_ = arena.take(tile * padded_dv_);
    lse_ = arena.take(tile);
    delta_ = arena.take(tile);
  }

  /// Begins with `queries` rows of q [d], dout and out [dv], rows ldq, ld_dout and ldo apart, and their
  /// log-sum-exps. Gradients of scores, and so dq and dk, are multiplied by `grad_scale`: where that is the
  /// scale of the softmax, dq and dk need no pass of their own for it.
  void start(const T* q, int64_t ldq, const T* dout, int64_t ld_dout, const T* out, int64_t ldo,
             const LseView<T>& lse, int64_t queries, T scale_log2, T grad_scale) {
    queries_ = queries;
    padded_queries_ = simd::padded<T>(queries);
    simd::scaled_transpose(q, ldq, queries, d_, scale_log2, q_transposed_, padded_queries_);
    simd::scaled_transpose(dout, ld_dout, queries, dv_, grad_scale, dout_transposed_, padded_queries_);
    q_ = whole_rows(q, ldq, queries, d_, q_copy_);
    dout_ = whole_rows(dout, ld_dout, queries, dv_, dout_copy_);
    std::fill_n(dq_sum_, queries * padded_d_, T(0));
    bool has_residuals = false;
    for (int64_t i = 0; i < queries; ++i) {
      // A query without keys has weights 2^(s - inf) = 0.
      const RowLse<T> row = lse.at(i);
      lse_[i] = row.log == minus_infinity<T> ? infinity<T> : row.weight_base().base;
      has_residuals = has_residuals || row.residual != T(0);
    }
    simd::row_dots(dout, ld_dout, out, ldo, queries, dv_, delta_);
    simd::scaled(delta_, padded_queries_, grad_scale, delta_);
    std::fill(lse_ + queries, lse_ + padded_queries_, infinity<T>);
    if (has_residuals) apply_factors(lse);
  }

  /// Adds the gradients of one tile of keys. Row 0 of k, v, dk and dv is the tile's first key; rows are
  /// padded to whole vectors. Adds the gradient of the score of query i and key j to diagonals[i - j]; null:
  /// not wanted. Returns the number of operations.
  int64_t add_keys(Rows<T> k, Rows<T> v, const TileMask& tile_mask, const ScoreModifiers<T>& modifiers,
                   SumRows<T> dk, SumRows<T> dv, T* diagonals) {
    int64_t flops = 0;
    // weights_ [keys, queries] = k q^T, the scores, and grad_scores_ = v dout^T, the gradients of the
    // weights.
    tile_mask.each_by_keys([&](const TileMask::Rectangle& r) {
      const int64_t first_pair = pair_index(r.key_begin, r.query_begin), keys = r.key_end - r.key_begin,
                    queries = simd::padded<T>(r.query_end - r.query_begin);
      flops += small_gemm(Left::row_major, keys, queries, d_, k.row(r.key_begin), k.ld,
                          q_transposed_ + r.query_begin, padded_queries_, weights_ + first_pair,
                          padded_queries_, /*add=*/false);
      flops += small_gemm(Left::row_major, keys, queries, dv_, v.row(r.key_begin), v.ld,
                          dout_transposed_ + r.query_begin, padded_queries_, grad_scores_ + first_pair,
                          padded_queries_, /*add=*/false);
    });
    modifiers.apply_formula(tile_mask, weights_, padded_queries_, modifiers.slopes);
    const bool has_dropout = modifiers.keep_mask != nullptr;
    if (modifiers.changes_scores()) {
      has_dropout ? score_gradients<true, true>(tile_mask, modifiers)
                  : score_gradients<true, false>(tile_mask, modifiers);
    } else {
      has_dropout ? score_gradients<false, true>(tile_mask, modifiers)
                  : score_gradients<false, false>(tile_mask, modifiers);
    }
    if (diagonals != nullptr) add_diagonals(tile_mask, diagonals);
    if (modifiers.formula != nullptr) multiply_by_slopes(tile_mask, modifiers.slopes);
    // Now weights_ holds weights after dropout and grad_scores_ gradients of scores: dv [keys, dv] += weights
    // dout and dk [keys, d] += grad_scores q.
    tile_mask.each_by_keys([&](const TileMask::Rectangle& r) {
      const int64_t first_pair = pair_index(r.key_begin, r.query_begin), keys = r.key_end - r.key_begin,
                    queries = r.query_end - r.query_begin;
      flops += small_gemm(Left::row_major, keys, padded_dv_, queries, weights_ + first_pair, padded_queries_,
                          dout_.row(r.query_begin), dout_.ld, dv.row(r.key_begin), dv.ld, /*add=*/true);
      flops +=
          small_gemm(Left::row_major, keys, padded_d_, queries, grad_scores_ + first_pair, padded_queries_,
                     q_.row(r.query_begin), q_.ld, dk.row(r.key_begin), dk.ld, /*add=*/true);
    });
    // dq [queries, d] += grad_scores^T k.
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      flops +=
          small_gemm(Left::transposed, r.query_end - r.query_begin, padded_d_, r.key_end - r.key_begin,
                     grad_scores_ + pair_index(r.key_begin, r.query_begin), padded_queries_,
                     k.row(r.key_begin), k.ld, dq_sum_ + r.query_begin * padded_d_, padded_d_, /*add=*/true);
    });
    return flops;
  }

  /// Writes dq [queries, d] = scale times its sums.
  void finish(T* dq, int64_t ld, T scale) const {
    for (int64_t i = 0; i < queries_; ++i) simd::scaled(dq_sum_ + i * padded_d_, d_, scale, dq + i * ld);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int64_t lanes = simd::Lanes<T>::count;

  /// Index of a pair in weights_ and grad_scores_ [keys, padded queries].
  int64_t pair_index(int64_t key, int64_t query) const { return key * padded_queries_ + query; }

  /// Multiplies the weights of each row by RowLse's factor, which is not 1 where rounding the log of their
  /// sum lost precision. All gradients are linear in dout, so this multiplies each row of dout instead.
  void apply_factors(const LseView<T>& lse) {
    for (int64_t i = 0; i < queries_; ++i) {
      const T factor = lse.at(i).weight_base().factor;
      simd::scaled(dout_.row(i), padded_dv_, factor, dout_copy_ + i * padded_dv_);
      for (int64_t c = 0; c < dv_; ++c) dout_transposed_[c * padded_queries_ + i] *= factor;
      delta_[i] *= factor;
    }
    dout_ = {dout_copy_, padded_dv_};
  }

  /// Replaces in place, [keys, queries], the scores s in weights_ by weights p = 2^(s - lse) after dropout,
  /// and the gradients dp of the weights in grad_scores_ by those of the scores, p (dp - delta) times the
  /// derivative of the softcap. Vector lanes are queries.
  template <bool changes_scores, bool has_dropout>
  void score_gradients(const TileMask& tile_mask, const ScoreModifiers<T>& modifiers) {
    const V masked = simd::splat(minus_infinity<T>);
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      for (int64_t query = r.query_begin; query < r.query_end; query += lanes) {
        const V lse = simd::load(lse_ + query), delta = simd::load(delta_ + query);
        for (int64_t j = r.key_begin; j < r.key_end; ++j) {
          T* const weight = weights_ + pair_index(j, query);
          T* const grad_score = grad_scores_ + pair_index(j, query);
          V s = simd::load(weight);
          [[maybe_unused]] V softcap_grad = simd::splat(T(1));
          if constexpr (changes_scores) {
            if (modifiers.softcap != 0) {
              const V tanh_score = fast_tanh<T>(s / modifiers.softcap);
              s = modifiers.softcap * tanh_score;
              softcap_grad = T(1) - tanh_score * tanh_score;
            }
            if (modifiers.bias != nullptr) s += simd::load(modifiers.bias + pair_index(j, query));
            if (modifiers.visible != nullptr) s = modifiers.visible->select(j, query, s, masked);
          }
          const V p = simd::exp2<T>(s - lse);
          V dp = simd::load(grad_score);
          if constexpr (has_dropout) {
            simd::store(weight, modifiers.keep_mask->select(j, query, p * modifiers.keep_scale, V{}));
            dp = modifiers.keep_mask->select(j, query, dp * modifiers.keep_scale, V{});
          } else {
            simd::store(weight, p);
          }
          if constexpr (changes_scores) {
            simd::store(grad_score, p * (dp - delta) * softcap_grad);
          } else {
            simd::store(grad_score, p * (dp - delta));
          }
        }
      }
    });
  }

  /// grad_scores *= slopes, both [keys, padded queries]: gradients before the formula of scores. A hidden
  /// pair keeps its 0, whatever its slope is.
  void multiply_by_slopes(const TileMask& tile_mask, const T* slopes) {
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      for (int64_t j = r.key_begin; j < r.key_end; ++j) {
        for (int64_t i = pair_index(j, r.query_begin); i < pair_index(j, r.query_end); ++i)
          grad_scores_[i] = grad_scores_[i] == T(0) ? T(0) : grad_scores_[i] * slopes[i];
      }
    });
  }

  /// diagonals[i - j] += grad_scores of query i and key j.
  void add_diagonals(const TileMask& tile_mask, T* diagonals) const {
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      for (int64_t j = r.key_begin; j < r.key_end; ++j) {
        for (int64_t i = r.query_begin; i < r.query_end; ++i)
          diagonals[i - j] += grad_scores_[pair_index(j, i)];
      }
    });
  }

  int64_t d_, dv_, padded_d_, padded_dv_;
  int64_t queries_ = 0, padded_queries_ = 0;
  Rows<T> q_{}, dout_{};
  T *q_transposed_, *dout_transposed_, *weights_, *grad_scores_, *q_copy_, *dq_sum_, *dout_copy_, *lse_,
      *delta_;
};

}  // namespace heed::kernel
