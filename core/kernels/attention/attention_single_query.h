// Single queries against keys picked one by one: for decoding, and where neighbouring queries share few keys.
#pragma once

#include <limits>

#include "core/kernels/attention_tile.h"

namespace heed::kernel {

/// The keys of one step, as distances in rows from the first.
struct Picked {
  const int32_t* index;
  int64_t count;  ///< at most a tile
};

/// dots[n] = x . row index[n] of `rows`, for every picked key; lanes past the count are `rest` up to a whole
/// vector.
template <class T>
void dots_of_picked(const T* x, int64_t width, Rows<T> rows, Picked keys, T rest, T* dots) {
  using V = simd::Vector<T>;
  constexpr int n = simd::Lanes<T>::count;
  constexpr int abreast = n < 4 ? n : 4;
  const int64_t whole = width / n * n;
  for (int64_t j = 0; j < keys.count; j += n) {
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
  std::fill(dots + keys.count, dots + simd::padded<T>(keys.count), rest);
}

/// to += sum over the picked of weight[n] rows[index[n]]; `width` whole vectors, rows as long.
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

/// The forward pass of one query.
template <class T>
class ForwardRow {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return Carve<T>::rounded(simd::padded<T>(d)) + Carve<T>::rounded(simd::padded<T>(dv)) + tile;
  }
  ForwardRow(T* memory, int64_t d, int64_t dv) : d_(d), dv_(dv), wide_(simd::padded<T>(dv)) {
    Carve<T> carve(memory);
    q_ = carve.take(simd::padded<T>(d));
    sum_ = carve.take(wide_);
    weights_ = carve.take(tile);
  }

  /// `sink`: as for ForwardTile.
  void start(const T* q, T factor, T sink = nothing) {
    simd::scaled(q, d_, factor, q_);
    std::fill(q_ + d_, q_ + simd::padded<T>(d_), T(0));
    std::fill_n(sum_, wide_, T(0));
    most_ = sink;
    total_ = sink == nothing ? T(0) : T(1);
  }

  /// k and v point at the rows that the index counts from. `bias`: one for each key in log2 units, or null;
  /// `cap` as in Between; `kept`: what dropout multiplies each weight by, or null.
  int64_t keys(Rows<T> k, Rows<T> v, Picked picked, const T* bias, T cap = 0, const T* kept = nullptr) {
    if (picked.count == 0) return 0;
    dots_of_picked(q_, d_, k, picked, nothing, weights_);
    for (int64_t j = 0; cap != 0 && j < picked.count; ++j)
      weights_[j] = cap * bounded<T>(simd::splat(weights_[j] / cap))[0];
    for (int64_t j = 0; bias != nullptr && j < picked.count; ++j) weights_[j] += bias[j];
    simd::Vector<T> mosts = simd::splat(most_);
    for (int64_t j = 0; j < picked.count; j += simd::Lanes<T>::count) {
      const simd::Vector<T> s = simd::load(weights_ + j);
      mosts = s > mosts ? s : mosts;
    }
    const T most = simd::across<T>(mosts, [](T a, T b) { return a > b ? a : b; });
    const T base = most == nothing ? T(0) : most;
    const T shrink = simd::exp2<T>(simd::splat(most_ - base))[0];
    simd::Vector<T> total = {};
    for (int64_t j = 0; j < picked.count; j += simd::Lanes<T>::count) {
      const simd::Vector<T> p = simd::exp2<T>(simd::load(weights_ + j) - base);
      simd::store(weights_ + j, p);
      total += p;
    }
    total_ = total_ * shrink + simd::across<T>(total, [](T a, T b) { return a + b; });
    most_ = most;
    for (int64_t j = 0; kept != nullptr && j < picked.count; ++j) weights_[j] *= kept[j];
    if (shrink != T(1)) simd::scaled(sum_, wide_, shrink, sum_);
    if (wide_ == dv_) {
      add_picked(weights_, v, picked, wide_, sum_);
    } else {
      for (int64_t j = 0; j < picked.count; ++j) {
        const T* row = v.data + picked.index[j] * v.ld;
        for (int64_t c = 0; c < dv_; ++c) sum_[c] += weights_[j] * row[c];
      }
    }
    return 2 * picked.count * (d_ + dv_);
  }

  /// To row 0 of `lse`.
  void finish(T* out, const RowLogs<T>& lse) const {
    simd::scaled(sum_, dv_, total_ == T(0) ? T(0) : T(1) / total_, out);
    const T log = simd::log2<T>(simd::splat(total_))[0];
    lse.put(0, total_ == T(0) ? RowLog<T>::nothing() : RowLog<T>::of(most_, log));
  }

 private:
  static constexpr T nothing = -std::numeric_limits<T>::infinity();
  int64_t d_, dv_, wide_;
  T most_ = nothing, total_ = 0;
  T *q_, *sum_, *weights_;
};

/// The backward pass of one query. Sums of dk and dv as in BackTile.
template <class T>
class BackRow {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return 3 * Carve<T>::rounded(simd::padded<T>(d)) + Carve<T>::rounded(simd::padded<T>(dv)) + 2 * tile;
  }
  BackRow(T* memory, int64_t d, int64_t dv)
      : d_(d), dv_(dv), wide_d_(simd::padded<T>(d)), wide_dv_(simd::padded<T>(dv)) {
    Carve<T> carve(memory);
    q_ = carve.take(wide_d_);
    scaled_q_ = carve.take(wide_d_);
    sum_ = carve.take(wide_d_);
    dout_ = carve.take(wide_dv_);
    weights_ = carve.take(tile);
    slopes_ = carve.take(tile);
  }

  /// `factor` and `slope` as in BackTile.
  void start(const T* q, const T* dout, const T* out, const RowLog<T>& lse, T factor, T slope) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    std::fill_n(q_, wide_d_, T(0));
    std::copy_n(q, d_, q_);
    simd::scaled(q_, wide_d_, factor, scaled_q_);
    std::fill_n(sum_, wide_d_, T(0));
    std::fill_n(dout_, wide_dv_, T(0));
    std::copy_n(dout, dv_, dout_);
    lse_ = lse.log == -infinity ? infinity : lse.split().base;
    T delta[simd::Lanes<T>::count];
    simd::row_dots(dout, dv_, out, dv_, 1, dv_, delta);
    delta_ = delta[0];
    if (lse.rest != T(0)) {  // as in BackTile
      const T share = lse.split().share;
      simd::scaled(dout_, wide_dv_, share, dout_);
      delta_ *= share;
    }
    slope_ = slope;
  }

  /// `kept` as in ForwardRow.
  int64_t keys(Rows<T> k, Rows<T> v, Picked picked, Sums<T> dk, Sums<T> dv, const T* kept = nullptr) {
    constexpr int n = simd::Lanes<T>::count;
    dots_of_picked(scaled_q_, wide_d_, k, picked, T(0), weights_);
    dots_of_picked(dout_, wide_dv_, v, picked, T(0), slopes_);
    for (int64_t j = 0; kept != nullptr && j < picked.count; ++j) slopes_[j] *= kept[j];
    for (int64_t j = 0; j < picked.count; j += n) {
      const simd::Vector<T> p = simd::exp2<T>(simd::load(weights_ + j) - lse_);
      simd::store(weights_ + j, p);
      simd::store(slopes_ + j, p * (simd::load(slopes_ + j) - delta_) * slope_);
    }
    for (int64_t j = 0; kept != nullptr && j < picked.count; ++j) weights_[j] *= kept[j];
    add_picked(slopes_, k, picked, wide_d_, sum_);
    for (int64_t j = 0; j < picked.count; ++j) {
      T *to_k = dk.row(picked.index[j]), *to_v = dv.row(picked.index[j]);
      for (int64_t c = 0; c < wide_d_; c += n) {
        simd::store(to_k + c, simd::load(to_k + c) + slopes_[j] * simd::load(q_ + c));
      }
      for (int64_t c = 0; c < wide_dv_; c += n) {
        simd::store(to_v + c, simd::load(to_v + c) + weights_[j] * simd::load(dout_ + c));
      }
    }
    return 2 * picked.count * (3 * d_ + 2 * dv_);
  }

  void finish(T* dq) const { simd::scaled(sum_, d_, T(1), dq); }

 private:
  int64_t d_, dv_, wide_d_, wide_dv_;
  T lse_ = 0, delta_ = 0, slope_ = 1;
  T *q_, *scaled_q_, *sum_, *dout_, *weights_, *slopes_;
};

}  // namespace heed::kernel
