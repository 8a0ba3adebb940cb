// Attention of one query at a time with lists of keys: for decoding, and where neighbouring queries share few
// keys.
#pragma once

#include "heed/core/kernels/attention/attention_tile.h"

namespace heed::kernel {

/// Up to `tile` keys: key n is row index[n].
struct KeyList {
  const int32_t* index;
  int64_t count;
};

/// dots[n] = x . rows[index[n]] for each key of the list; `fill` from the last key up to a whole vector.
template <class T>
void dots_with_keys(const T* x, int64_t width, Rows<T> rows, KeyList keys, T fill, T* dots) {
  using V = simd::Vector<T>;
  constexpr int lanes = simd::Lanes<T>::count;
  constexpr int keys_at_once = lanes < 4 ? lanes : 4;
  const int64_t full_width = width / lanes * lanes;
  for (int64_t j = 0; j < keys.count; j += lanes) {
    // lane_sums[n]: products of x and key j + n, summed apart in each lane; row_sums() adds the lanes.
    V lane_sums[lanes] = {};
    const int64_t count = std::min<int64_t>(lanes, keys.count - j);
    for (int64_t i = 0; i < count; i += keys_at_once) {
      const T* row[keys_at_once];
      V sum[keys_at_once];
      for (int r = 0; r < keys_at_once; ++r) {
        row[r] = rows.row(keys.index[j + std::min(i + r, count - 1)]);
        sum[r] = V{};
      }
      for (int64_t c = 0; c < full_width; c += lanes) {
        const V x_part = simd::load(x + c);
#pragma GCC unroll 4
        for (int r = 0; r < keys_at_once; ++r) sum[r] += simd::load(row[r] + c) * x_part;
      }
      if (full_width < width) {
        const V x_part = simd::load(x + full_width);
        for (int r = 0; r < keys_at_once; ++r)
          sum[r] += simd::load_part(row[r] + full_width, width - full_width) * x_part;
      }
#pragma GCC unroll 4
      for (int r = 0; r < keys_at_once; ++r) lane_sums[i + r] = sum[r];
    }
    simd::store(dots + j, simd::row_sums<T>(lane_sums));
  }
  std::fill(dots + keys.count, dots + simd::padded<T>(keys.count), fill);
}

/// sums [width] += sum over n of weights[n] rows[index[n]]. `width` is a whole number of vectors.
template <class T>
void add_weighted_rows(const T* weights, Rows<T> rows, KeyList keys, int64_t width, T* sums) {
  using V = simd::Vector<T>;
  constexpr int lanes = simd::Lanes<T>::count;
  const auto add_columns = [&]<int vectors>(std::integral_constant<int, vectors>, int64_t c) {
    V sum[vectors];
    for (int v = 0; v < vectors; ++v) sum[v] = simd::load(sums + c + v * lanes);
    for (int64_t j = 0; j < keys.count; ++j) {
      const T* row = rows.row(keys.index[j]) + c;
      for (int v = 0; v < vectors; ++v) sum[v] += weights[j] * simd::load(row + v * lanes);
    }
    for (int v = 0; v < vectors; ++v) simd::store(sums + c + v * lanes, sum[v]);
  };
  int64_t c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) add_columns(std::integral_constant<int, 4>{}, c);
  for (; c < width; c += lanes) add_columns(std::integral_constant<int, 1>{}, c);
}

/// The forward pass of one query: online softmax over lists of keys. Usage: start(), add_keys() for each list
/// of keys, finish().
template <class T>
class ForwardRow {
 public:
  /// Number of elements of the working memory.
  static int64_t scratch_size(int64_t d, int64_t dv) {
    return BumpAllocator<T>::rounded(simd::padded<T>(d)) + BumpAllocator<T>::rounded(simd::padded<T>(dv)) +
           tile;
  }
  ForwardRow(T* memory, int64_t d, int64_t dv) : d_(d), dv_(dv), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_ = arena.take(simd::padded<T>(d));
    output_sum_ = arena.take(padded_dv_);
    weights_ = arena.take(tile);
  }

  /// Begins with a query q [d]; `scale_log2` and `sink` are those of ForwardTile::start().
  void start(const T* q, T scale_log2, T sink) {
    simd::scaled(q, d_, scale_log2, q_);
    std::fill(q_ + d_, q_ + simd::padded<T>(d_), T(0));
    std::fill_n(output_sum_, padded_dv_, T(0));
    row_max_ = sink;
    row_sum_ = sink == minus_infinity<T> ? T(0) : T(1);
  }

  /// Adds the listed rows of k and v. For each key of the list, `bias` holds a bias in log2 units and
  /// `dropout_factors` the factor of its weight; either may be null. `softcap` is in log2 units; 0: none.
  /// Returns the number of operations.
  int64_t add_keys(Rows<T> k, Rows<T> v, KeyList list, const T* bias, T softcap, const T* dropout_factors) {
    using V = simd::Vector<T>;
    if (list.count == 0) return 0;
    // weights_ [keys] = q . k, the scores, then with softcap and bias.
    dots_with_keys(q_, d_, k, list, minus_infinity<T>, weights_);
    for (int64_t j = 0; softcap != 0 && j < list.count; ++j)
      weights_[j] = softcap * fast_tanh<T>(simd::splat(weights_[j] / softcap))[0];
    for (int64_t j = 0; bias != nullptr && j < list.count; ++j) weights_[j] += bias[j];
    V max_per_lane = simd::splat(row_max_);
    for (int64_t j = 0; j < list.count; j += simd::Lanes<T>::count) {
      const V score = simd::load(weights_ + j);
      max_per_lane = score > max_per_lane ? score : max_per_lane;
    }
    const T new_max = simd::across<T>(max_per_lane, [](T a, T b) { return a > b ? a : b; });
    // weights_ = 2^(score - new_max), then after dropout; older sums are multiplied by `correction`.
    const T base = new_max == minus_infinity<T> ? T(0) : new_max;
    const T correction = simd::exp2<T>(simd::splat(row_max_ - base))[0];
    V sum_per_lane = {};
    for (int64_t j = 0; j < list.count; j += simd::Lanes<T>::count) {
      const V weight = simd::exp2<T>(simd::load(weights_ + j) - base);
      simd::store(weights_ + j, weight);
      sum_per_lane += weight;
    }
    row_sum_ = row_sum_ * correction + simd::across<T>(sum_per_lane, [](T a, T b) { return a + b; });
    row_max_ = new_max;
    for (int64_t j = 0; dropout_factors != nullptr && j < list.count; ++j) weights_[j] *= dropout_factors[j];
    // output_sum_ [dv] += weights v.
    if (correction != T(1)) simd::scaled(output_sum_, padded_dv_, correction, output_sum_);
    if (padded_dv_ == dv_) {
      add_weighted_rows(weights_, v, list, padded_dv_, output_sum_);
    } else {
      for (int64_t j = 0; j < list.count; ++j) {
        const T* row = v.row(list.index[j]);
        for (int64_t c = 0; c < dv_; ++c) output_sum_[c] += weights_[j] * row[c];
      }
    }
    return 2 * list.count * (d_ + dv_);
  }

  /// Writes out [dv] = output_sum / row_sum, and the log-sum-exp to row 0 of `lse`.
  void finish(T* out, const LseView<T>& lse) const {
    simd::scaled(output_sum_, dv_, row_sum_ == T(0) ? T(0) : T(1) / row_sum_, out);
    const T log = simd::log2<T>(simd::splat(row_sum_))[0];
    lse.put(0, row_sum_ == T(0) ? RowLse<T>::of_empty_row() : RowLse<T>::of(row_max_, log));
  }

 private:
  int64_t d_, dv_, padded_dv_;
  T row_max_ = minus_infinity<T>, row_sum_ = 0;
  T *q_, *output_sum_, *weights_;
};

/// The backward pass of one query; for the formula and the caller's sums of dk and dv see BackwardTile.
/// Usage: start(), add_keys() for each list of keys, finish().
template <class T>
class BackwardRow {
 public:
  /// Number of elements of the working memory.
  static int64_t scratch_size(int64_t d, int64_t dv) {
    return 3 * BumpAllocator<T>::rounded(simd::padded<T>(d)) +
           BumpAllocator<T>::rounded(simd::padded<T>(dv)) + 2 * tile;
  }
  BackwardRow(T* memory, int64_t d, int64_t dv)
      : d_(d), dv_(dv), padded_d_(simd::padded<T>(d)), padded_dv_(simd::padded<T>(dv)) {
    BumpAllocator<T> arena(memory);
    q_ = arena.take(padded_d_);
    scaled_q_ = arena.take(padded_d_);
    dq_sum_ = arena.take(padded_d_);
    dout_ = arena.take(padded_dv_);
    weights_ = arena.take(tile);
    grad_scores_ = arena.take(tile);
  }

  /// Begins with a query q [d]; `scale_log2` and `grad_scale` are those of BackwardTile::start().
  void start(const T* q, const T* dout, const T* out, const RowLse<T>& lse, T scale_log2, T grad_scale) {
    std::fill_n(q_, padded_d_, T(0));
    std::copy_n(q, d_, q_);
    simd::scaled(q_, padded_d_, scale_log2, scaled_q_);
    std::fill_n(dq_sum_, padded_d_, T(0));
    std::fill_n(dout_, padded_dv_, T(0));
    std::copy_n(dout, dv_, dout_);
    lse_ = lse.log == minus_infinity<T> ? infinity<T> : lse.weight_base().base;
    T delta[simd::Lanes<T>::count];
    simd::row_dots(dout, dv_, out, dv_, 1, dv_, delta);
    delta_ = delta[0];
    if (lse.residual != T(0)) {  // see BackwardTile::apply_factors()
      const T factor = lse.weight_base().factor;
      simd::scaled(dout_, padded_dv_, factor, dout_);
      delta_ *= factor;
    }
    grad_scale_ = grad_scale;
  }

  /// Adds the gradients of the listed keys to dk, dv and dq. `dropout_factors` holds the factor of each
  /// weight, or is null. Returns the number of operations.
  int64_t add_keys(Rows<T> k, Rows<T> v, KeyList list, SumRows<T> dk, SumRows<T> dv,
                   const T* dropout_factors) {
    constexpr int lanes = simd::Lanes<T>::count;
    // weights_ [keys] = q . k and grad_scores_ = dout . v, which then become weights and gradients of scores.
    dots_with_keys(scaled_q_, padded_d_, k, list, T(0), weights_);
    dots_with_keys(dout_, padded_dv_, v, list, T(0), grad_scores_);
    for (int64_t j = 0; dropout_factors != nullptr && j < list.count; ++j)
      grad_scores_[j] *= dropout_factors[j];
    for (int64_t j = 0; j < list.count; j += lanes) {
      const simd::Vector<T> weight = simd::exp2<T>(simd::load(weights_ + j) - lse_);
      simd::store(weights_ + j, weight);
      simd::store(grad_scores_ + j, weight * (simd::load(grad_scores_ + j) - delta_) * grad_scale_);
    }
    for (int64_t j = 0; dropout_factors != nullptr && j < list.count; ++j) weights_[j] *= dropout_factors[j];
    add_weighted_rows(grad_scores_, k, list, padded_d_, dq_sum_);
    for (int64_t j = 0; j < list.count; ++j) {
      T *dk_row = dk.row(list.index[j]), *dv_row = dv.row(list.index[j]);
      for (int64_t c = 0; c < padded_d_; c += lanes) {
        simd::store(dk_row + c, simd::load(dk_row + c) + grad_scores_[j] * simd::load(q_ + c));
      }
      for (int64_t c = 0; c < padded_dv_; c += lanes) {
        simd::store(dv_row + c, simd::load(dv_row + c) + weights_[j] * simd::load(dout_ + c));
      }
    }
    return 2 * list.count * (3 * d_ + 2 * dv_);
  }

  /// Writes dq [d].
  void finish(T* dq) const { simd::scaled(dq_sum_, d_, T(1), dq); }

 private:
  int64_t d_, dv_, padded_d_, padded_dv_;
  T lse_ = 0, delta_ = 0, grad_scale_ = 1;
  T *q_, *scaled_q_, *dq_sum_, *dout_, *weights_, *grad_scores_;
};

}  // namespace heed::kernel
