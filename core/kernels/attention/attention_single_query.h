// Attention of one query at a time against a list of keys: for decoding, and where neighbouring queries share
// few keys.
#pragma once

#include <limits>

#include "heed/core/kernels/attention/attention_tile.h"

namespace heed::kernel {

/// A list of at most 64 keys, as row numbers.
struct Picked {
  const int32_t* index;
  int64_t count;  ///< at most a tile
};

/// dots[n] = x . rows[index[n]] for each picked key. Fills dots with `fill` from the count up to a whole
/// vector.
template <class T>
void dots_of_picked(const T* x, int64_t width, Rows<T> rows, Picked keys, T fill, T* dots) {
  using V = simd::Vector<T>;
  constexpr int n = simd::Lanes<T>::count;
  constexpr int abreast = n < 4 ? n : 4;
  const int64_t whole = width / n * n;
  for (int64_t j = 0; j < keys.count; j += n) {
    // As many keys as a vector has lanes: their products lane by lane, and then summed across lanes.
    V part[n] = {};
    const int64_t present = std::min<int64_t>(n, keys.count - j);
    for (int64_t i = 0; i < present; i += abreast) {
      const T* row[abreast];
      V sum[abreast];
      for (int r = 0; r < abreast; ++r) {
        row[r] = rows.data + keys.index[j + std::min(i + r, present - 1)] * rows.ld;
        sum[r] = V{};
      }
      for (int64_t c = 0; c < whole; c += n) {
        const V one = simd::load(x + c);
#pragma GCC unroll 4
        for (int r = 0; r < abreast; ++r) sum[r] += simd::load(row[r] + c) * one;
      }
      if (whole < width) {
        const V one = simd::load(x + whole);
        for (int r = 0; r < abreast; ++r) sum[r] += simd::load_part(row[r] + whole, width - whole) * one;
      }
#pragma GCC unroll 4
      for (int r = 0; r < abreast; ++r) part[i + r] = sum[r];
    }
    simd::store(dots + j, simd::row_sums<T>(part));
  }
  std::fill(dots + keys.count, dots + simd::padded<T>(keys.count), fill);
}

/// to [width] += sum over n of weights[n] rows[index[n]]. `width` is a whole number of vectors.
template <class T>
void add_picked(const T* weights, Rows<T> rows, Picked keys, int64_t width, T* to) {
  using V = simd::Vector<T>;
  constexpr int n = simd::Lanes<T>::count;
  const auto columns = [&]<int vectors>(std::integral_constant<int, vectors>, int64_t c) {
    V sum[vectors];
    for (int v = 0; v < vectors; ++v) sum[v] = simd::load(to + c + v * n);
    for (int64_t j = 0; j < keys.count; ++j) {
      const T* row = rows.data + keys.index[j] * rows.ld + c;
      for (int v = 0; v < vectors; ++v) sum[v] += weights[j] * simd::load(row + v * n);
    }
    for (int v = 0; v < vectors; ++v) simd::store(to + c + v * n, sum[v]);
  };
  int64_t c = 0;
  for (; c + 4 * n <= width; c += 4 * n) columns(std::integral_constant<int, 4>{}, c);
  for (; c < width; c += n) columns(std::integral_constant<int, 1>{}, c);
}

/// The forward pass of one query. Usage: start(), keys() for each list of keys, finish().
template <class T>
class ForwardRow {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return BumpAllocator<T>::rounded(simd::padded<T>(d)) + BumpAllocator<T>::rounded(simd::padded<T>(dv)) +
           tile;
  }
  ForwardRow(T* memory, int64_t d, int64_t dv) : d_(d), dv_(dv), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_ = arena.take(simd::padded<T>(d));
    sum_ = arena.take(padded_dv_);
    weights_ = arena.take(tile);
  }

  /// Takes q [d]; `scale_log2` and `sink` as in ForwardTile.
  void start(const T* q, T scale_log2, T sink = minus_infinity) {
    simd::scaled(q, d_, scale_log2, q_);
    std::fill(q_ + d_, q_ + simd::padded<T>(d_), T(0));
    std::fill_n(sum_, padded_dv_, T(0));
    max_score_ = sink;
    weight_sum_ = sink == minus_infinity ? T(0) : T(1);
  }

  /// Adds a list of keys; k and v point at row 0. `bias` holds one number per key in log2 units, or is null;
  /// `cap` as in ScoreModifiers; `keep_mask` holds the dropout factor of each weight, or is null.
  int64_t keys(Rows<T> k, Rows<T> v, Picked picked, const T* bias, T cap = 0, const T* keep_mask = nullptr) {
    if (picked.count == 0) return 0;
    dots_of_picked(q_, d_, k, picked, minus_infinity, weights_);
    for (int64_t j = 0; cap != 0 && j < picked.count; ++j)
      weights_[j] = cap * bounded<T>(simd::splat(weights_[j] / cap))[0];
    for (int64_t j = 0; bias != nullptr && j < picked.count; ++j) weights_[j] += bias[j];
    simd::Vector<T> max_scores = simd::splat(max_score_);
    for (int64_t j = 0; j < picked.count; j += simd::Lanes<T>::count) {
      const simd::Vector<T> s = simd::load(weights_ + j);
      max_scores = s > max_scores ? s : max_scores;
    }
    const T max_score = simd::across<T>(max_scores, [](T a, T b) { return a > b ? a : b; });
    const T base = max_score == minus_infinity ? T(0) : max_score;
    const T correction = simd::exp2<T>(simd::splat(max_score_ - base))[0];
    simd::Vector<T> total = {};
    for (int64_t j = 0; j < picked.count; j += simd::Lanes<T>::count) {
      const simd::Vector<T> p = simd::exp2<T>(simd::load(weights_ + j) - base);
      simd::store(weights_ + j, p);
      total += p;
    }
    weight_sum_ = weight_sum_ * correction + simd::across<T>(total, [](T a, T b) { return a + b; });
    max_score_ = max_score;
    for (int64_t j = 0; keep_mask != nullptr && j < picked.count; ++j) weights_[j] *= keep_mask[j];
    if (correction != T(1)) simd::scaled(sum_, padded_dv_, correction, sum_);
    if (padded_dv_ == dv_) {
      add_picked(weights_, v, picked, padded_dv_, sum_);
    } else {
      for (int64_t j = 0; j < picked.count; ++j) {
        const T* row = v.data + picked.index[j] * v.ld;
        for (int64_t c = 0; c < dv_; ++c) sum_[c] += weights_[j] * row[c];
      }
    }
    return 2 * picked.count * (d_ + dv_);
  }

  /// Writes out [dv], and the log of the sum to row 0 of `lse`.
  void finish(T* out, const RowLogs<T>& lse) const {
    simd::scaled(sum_, dv_, weight_sum_ == T(0) ? T(0) : T(1) / weight_sum_, out);
    const T log = simd::log2<T>(simd::splat(weight_sum_))[0];
    lse.put(0, weight_sum_ == T(0) ? RowLog<T>::of_no_keys() : RowLog<T>::of(max_score_, log));
  }

 private:
  static constexpr T minus_infinity = -std::numeric_limits<T>::infinity();
  int64_t d_, dv_, padded_dv_;
  T max_score_ = minus_infinity, weight_sum_ = 0;
  T *q_, *sum_, *weights_;
};

/// The backward pass of one query. The caller owns the sums of dk and dv, as for BackTile.
template <class T>
class BackRow {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return 3 * BumpAllocator<T>::rounded(simd::padded<T>(d)) +
           BumpAllocator<T>::rounded(simd::padded<T>(dv)) + 2 * tile;
  }
  BackRow(T* memory, int64_t d, int64_t dv)
      : d_(d), dv_(dv), padded_d_(simd::padded<T>(d)), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_ = arena.take(padded_d_);
    scaled_q_ = arena.take(padded_d_);
    sum_ = arena.take(padded_d_);
    dout_ = arena.take(padded_dv_);
    weights_ = arena.take(tile);
    grads_ = arena.take(tile);
  }

  /// `scale_log2` and `grad_scale` as in BackTile.
  void start(const T* q, const T* dout, const T* out, const RowLog<T>& lse, T scale_log2, T grad_scale) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    std::fill_n(q_, padded_d_, T(0));
    std::copy_n(q, d_, q_);
    simd::scaled(q_, padded_d_, scale_log2, scaled_q_);
    std::fill_n(sum_, padded_d_, T(0));
    std::fill_n(dout_, padded_dv_, T(0));
    std::copy_n(dout, dv_, dout_);
    lse_ = lse.log == -infinity ? infinity : lse.split().base;
    T delta[simd::Lanes<T>::count];
    simd::row_dots(dout, dv_, out, dv_, 1, dv_, delta);
    delta_ = delta[0];
    if (lse.rest != T(0)) {  // as in BackTile
      const T share = lse.split().share;
      simd::scaled(dout_, padded_dv_, share, dout_);
      delta_ *= share;
    }
    grad_scale_ = grad_scale;
  }

  /// `keep_mask` as in ForwardRow.
  int64_t keys(Rows<T> k, Rows<T> v, Picked picked, SumRows<T> dk, SumRows<T> dv,
               const T* keep_mask = nullptr) {
    constexpr int n = simd::Lanes<T>::count;
    dots_of_picked(scaled_q_, padded_d_, k, picked, T(0), weights_);
    dots_of_picked(dout_, padded_dv_, v, picked, T(0), grads_);
    for (int64_t j = 0; keep_mask != nullptr && j < picked.count; ++j) grads_[j] *= keep_mask[j];
    for (int64_t j = 0; j < picked.count; j += n) {
      const simd::Vector<T> p = simd::exp2<T>(simd::load(weights_ + j) - lse_);
      simd::store(weights_ + j, p);
      simd::store(grads_ + j, p * (simd::load(grads_ + j) - delta_) * grad_scale_);
    }
    for (int64_t j = 0; keep_mask != nullptr && j < picked.count; ++j) weights_[j] *= keep_mask[j];
    add_picked(grads_, k, picked, padded_d_, sum_);
    for (int64_t j = 0; j < picked.count; ++j) {
      T *to_k = dk.row(picked.index[j]), *to_v = dv.row(picked.index[j]);
      for (int64_t c = 0; c < padded_d_; c += n) {
        simd::store(to_k + c, simd::load(to_k + c) + grads_[j] * simd::load(q_ + c));
      }
      for (int64_t c = 0; c < padded_dv_; c += n) {
        simd::store(to_v + c, simd::load(to_v + c) + weights_[j] * simd::load(dout_ + c));
      }
    }
    return 2 * picked.count * (3 * d_ + 2 * dv_);
  }

  void finish(T* dq) const { simd::scaled(sum_, d_, T(1), dq); }

 private:
  int64_t d_, dv_, padded_d_, padded_dv_;
  T lse_ = 0, delta_ = 0, grad_scale_ = 1;
  T *q_, *scaled_q_, *sum_, *dout_, *weights_, *grads_;
};

}  // namespace heed::kernel
