// The backward pass of one tile of queries [<= 64] against runs of keys: gradients of q, k and v.
#pragma once

#include "heed/core/kernels/attention/attention_tile.h"

namespace heed::kernel {

/// The backward pass of one tile of queries. The caller owns the sums of dk [keys, padded d] and dv [keys,
/// padded dv], which start at zero. Usage: start(), keys() for each tile of keys, finish().
template <class T>
class BackTile {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    const int64_t padded_d = tile * simd::padded<T>(d), padded_dv = tile * simd::padded<T>(dv);
    return BumpAllocator<T>::rounded(d * tile) + BumpAllocator<T>::rounded(dv * tile) + 2 * tile * tile +
           2 * BumpAllocator<T>::rounded(padded_d) + BumpAllocator<T>::rounded(padded_dv) + 2 * tile;
  }
  BackTile(T* memory, int64_t d, int64_t dv)
      : d_(d), dv_(dv), padded_d_(simd::padded<T>(d)), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_transposed_ = arena.take(d * tile);
    dout_transposed_ = arena.take(dv * tile);
    weights_ = arena.take(tile * tile);
    grads_ = arena.take(tile * tile);
    q_copy_ = arena.take(tile * padded_d_);
    sum_ = arena.take(tile * padded_d_);
    dout_copy_ = arena.take(tile * padded_dv_);
    lse_ = arena.take(tile);
    delta_ = arena.take(tile);
  }

  /// Multiplies the gradients of the scores, and so dq and dk, by `grad_scale`: given the softmax scale here,
  /// they need no pass of their own for it.
  void start(const T* q, int64_t ldq, const T* dout, int64_t ld_dout, const T* out, int64_t ldo,
             const RowLogs<T>& lse, int64_t queries, T scale_log2, T grad_scale) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    queries_ = queries;
    padded_queries_ = simd::padded<T>(queries);
    simd::scaled_transpose(q, ldq, queries, d_, scale_log2, q_transposed_, padded_queries_);
    simd::scaled_transpose(dout, ld_dout, queries, dv_, grad_scale, dout_transposed_, padded_queries_);
    q_ = whole_rows(q, ldq, queries, d_, q_copy_);
    dout_ = whole_rows(dout, ld_dout, queries, dv_, dout_copy_);
    std::fill_n(sum_, queries * padded_d_, T(0));
    bool all_exact = true;
    for (int64_t i = 0; i < queries; ++i) {
      // A query without keys has weights 2^(s - inf) = 0.
      const RowLog<T> row = lse.at(i);
      lse_[i] = row.log == -infinity ? infinity : row.split().base;
      all_exact = all_exact && row.rest == T(0);
    }
    simd::row_dots(dout, ld_dout, out, ldo, queries, dv_, delta_);
    simd::scaled(delta_, padded_queries_, grad_scale, delta_);
    std::fill(lse_ + queries, lse_ + padded_queries_, infinity);
    if (!all_exact) shrink_rows(lse);
  }

  /// Adds the gradients of one tile of keys. k, v, dk and dv are rows padded to whole vectors from the tile's
  /// first key on. Adds the gradient of the score of query i and key j to diagonals[i - j] unless that is
  /// null.
  int64_t keys(Rows<T> k, Rows<T> v, const TileMask& tile_mask, const ScoreModifiers<T>& modifiers,
               SumRows<T> dk, SumRows<T> dv, T* diagonals = nullptr) {
    int64_t flops = 0;
    tile_mask.each_rectangle([&](const TileMask::Step& s) {
      const int64_t at = s.low * padded_queries_ + s.from, keys = s.high - s.low,
                    padded_lanes = simd::padded<T>(s.to - s.from);
      flops += small_gemm(Left::row_major, keys, padded_lanes, d_, k.data + s.low * k.ld, k.ld,
                          q_transposed_ + s.from, padded_queries_, weights_ + at, padded_queries_, false);
      flops += small_gemm(Left::row_major, keys, padded_lanes, dv_, v.data + s.low * v.ld, v.ld,
                          dout_transposed_ + s.from, padded_queries_, grads_ + at, padded_queries_, false);
    });
    if (modifiers.masked()) {
      modifiers.keep_mask != nullptr ? score_gradients<true, true>(tile_mask, modifiers)
                                     : score_gradients<true, false>(tile_mask, modifiers);
    } else {
      modifiers.keep_mask != nullptr ? score_gradients<false, true>(tile_mask, modifiers)
                                     : score_gradients<false, false>(tile_mask, modifiers);
    }
    if (diagonals != nullptr) add_diagonals(tile_mask, diagonals);
    tile_mask.each_rectangle([&](const TileMask::Step& s) {
      const int64_t at = s.low * padded_queries_ + s.from, keys = s.high - s.low, queries = s.to - s.from;
      flops += small_gemm(Left::row_major, keys, padded_dv_, queries, weights_ + at, padded_queries_,
                          dout_.data + s.from * dout_.ld, dout_.ld, dv.row(s.low), dv.ld, true);
      flops += small_gemm(Left::row_major, keys, padded_d_, queries, grads_ + at, padded_queries_,
                          q_.data + s.from * q_.ld, q_.ld, dk.row(s.low), dk.ld, true);
    });
    tile_mask.each([&](const TileMask::Step& s) {
      flops += small_gemm(Left::transposed, s.to - s.from, padded_d_, s.high - s.low,
                          grads_ + s.low * padded_queries_ + s.from, padded_queries_, k.data + s.low * k.ld,
                          k.ld, sum_ + s.from * padded_d_, padded_d_, true);
    });
    return flops;
  }

  /// Writes dq [queries, d].
  void finish(T* dq, int64_t ld, T scale) const {
    for (int64_t i = 0; i < queries_; ++i) simd::scaled(sum_ + i * padded_d_, d_, scale, dq + i * ld);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int64_t lanes = simd::Lanes<T>::count;

  /// Some rows need their weights multiplied by a share, because rounding the log of their sum lost precision
  /// (see RowLog). All gradients are linear in dout, so this multiplies each row of dout instead.
  void shrink_rows(const RowLogs<T>& lse) {
    for (int64_t i = 0; i < queries_; ++i) {
      const T share = lse.at(i).split().share;
      simd::scaled(dout_.data + i * dout_.ld, padded_dv_, share, dout_copy_ + i * padded_dv_);
      for (int64_t c = 0; c < dv_; ++c) dout_transposed_[c * padded_queries_ + i] *= share;
      delta_[i] *= share;
    }
    dout_ = {dout_copy_, padded_dv_};
  }

  /// Replaces the scores [keys, queries] by weights after dropout, and the gradients of the weights by the
  /// gradients of the scores.
  template <bool masked, bool dropped>
  void score_gradients(const TileMask& tile_mask, const ScoreModifiers<T>& modifiers) {
    const V minus_infinity = simd::splat(-std::numeric_limits<T>::infinity());
    tile_mask.each([&](const TileMask::Step& step) {
      for (int64_t lane = step.from; lane < step.to; lane += lanes) {
        const V lse = simd::load(lse_ + lane), delta = simd::load(delta_ + lane);
        for (int64_t j = step.low; j < step.high; ++j) {
          T* weight = weights_ + j * padded_queries_ + lane;
          T* gradient = grads_ + j * padded_queries_ + lane;
          V s = simd::load(weight);
          [[maybe_unused]] V cap_grad = simd::splat(T(1));
          if constexpr (masked) {
            if (modifiers.cap != 0) {
              const V bound = bounded<T>(s / modifiers.cap);
              s = modifiers.cap * bound;
              cap_grad = T(1) - bound * bound;
            }
            if (modifiers.bias != nullptr) s += simd::load(modifiers.bias + j * padded_queries_ + lane);
            if (modifiers.visible != nullptr) s = modifiers.visible->select(j, lane, s, minus_infinity);
          }
          const V p = simd::exp2<T>(s - lse);
          V dp = simd::load(gradient);
          if constexpr (dropped) {
            simd::store(weight, modifiers.keep_mask->select(j, lane, p * modifiers.keep_scale, V{}));
            dp = modifiers.keep_mask->select(j, lane, dp * modifiers.keep_scale, V{});
          } else {
            simd::store(weight, p);
          }
          if constexpr (masked) {
            simd::store(gradient, p * (dp - delta) * cap_grad);
          } else {
            simd::store(gradient, p * (dp - delta));
          }
        }
      }
    });
  }

  void add_diagonals(const TileMask& tile_mask, T* diagonals) const {
    tile_mask.each([&](const TileMask::Step& s) {
      for (int64_t j = s.low; j < s.high; ++j) {
        for (int64_t i = s.from; i < s.to; ++i) diagonals[i - j] += grads_[j * padded_queries_ + i];
      }
    });
  }

  int64_t d_, dv_, padded_d_, padded_dv_;
  int64_t queries_ = 0, padded_queries_ = 0;
  Rows<T> q_{}, dout_{};
  T *q_transposed_, *dout_transposed_, *weights_, *grads_, *q_copy_, *sum_, *dout_copy_, *lse_, *delta_;
};

}  // namespace heed::kernel
