// Extents of a PolynomialAttention call on the CPU, and its list of monomials.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/linear_attention/monomials.h"

namespace heed::kernel {

/// A block of features that is computed and used together.
struct FeatureBlock {
  int64_t feature, count;  ///< features [feature, feature + count) of the state
  int64_t row;             ///< for degrees 0 and 1 the first row of MappedChunk; else -1
  int64_t node;            ///< for other degrees the first monomial; else -1
};

/// Constants of a call. Queries are multiplied by `prescale`, which contains the scale and the coefficient of
/// degree 1, so features of degree 0 and 1 need no weight.
template <class T>
struct PolynomialPlan {
  static constexpr int64_t block_rows = 48;

  const PolynomialParams& params;
  int64_t d, dv;
  int64_t padded_dv;  ///< dv in whole vectors
  int64_t ld;         ///< distance between the rows of a state, [dv + 1] numbers each
  int64_t chunk, degree, features;
  int64_t span;  ///< with dropout of monomials: causal tokens whose pairs go through features, not the state
  T prescale;    ///< factor of a query's mapped row
  std::vector<T> coefficients, derivative;  ///< coefficients of f and of f', as functions of prescaled scores
  std::vector<Monomial<T>> nodes;
  std::vector<FeatureBlock> blocks;

  /// `length`: queries of a head, where known.
  PolynomialPlan(const PolynomialParams& t, int64_t width, int64_t values, bool factored, int64_t length = 0)
      : params(t),
        d(width),
        dv(values),
        padded_dv(simd::padded<T>(values)),
        ld(simd::padded<T>(values + 1)),
        chunk(chunk_of(t, values, length)),
        degree(static_cast<int64_t>(t.coefficients.size()) - 1),
        features(factored ? num_polynomial_features(width, t.coefficients) : 0),
        span(length <= chunk ? chunk : 16) {
    const double first = degree >= 1 && t.coefficients[1] != 0 ? t.coefficients[1] : 1;
    prescale = static_cast<T>(first * t.scale);
    std::vector<double> scaled = t.coefficients;
    for (size_t l = 0; l < scaled.size(); ++l) {
      scaled[l] /= std::pow(first, static_cast<double>(l));
      coefficients.push_back(static_cast<T>(scaled[l]));
      if (l > 0) derivative.push_back(static_cast<T>(static_cast<double>(l) * scaled[l]));
    }
    if (!factored) return;
    nodes = monomials<T>(d, scaled);
    const int64_t begin = scaled[0] != 0 ? 0 : 1, end = degree >= 1 && scaled[1] != 0 ? d + 1 : 1;
    int64_t feature = 0;
    const auto cut = [&](int64_t from, int64_t to, bool rows) {
      for (int64_t at = from, count = 0; at < to; at += count) {
        // Dropped features draw 16 at a time: all blocks but the first begin where a draw does.
        count = std::min(rows || !has_monomial_dropout() ? block_rows : block_rows - feature % 16, to - at);
        blocks.push_back({feature, count, rows ? at : -1, rows ? -1 : at});
        feature += count;
      }
    };
    cut(begin, end, true);
    cut(0, static_cast<int64_t>(nodes.size()), false);
  }

  /// Number of tokens of a chunk. With few features, pairs cost more than the state, so chunks are short.
  /// With dropout of monomials, pairs of n tokens cost 4 (n / 2 + 8) multiplications per token and feature,
  /// and the state 7 dv, so a short input is one chunk, without a state.
  static int64_t chunk_of(const PolynomialParams& t, int64_t dv, int64_t length) {
    if (t.chunk > 0) return t.chunk;
    if (t.coefficients.size() <= 2) return 32;
    const bool is_short = drops_monomials(t) && length <= std::min<int64_t>(3 * dv, 256);
    return is_short ? std::max<int64_t>(64, ceil_div(length, int64_t{16}) * 16) : 64;
  }
  /// True where dropout drops monomials of degree 2 and more of each token.
  bool has_monomial_dropout() const {
    return drops_monomials(params) && dropout_threshold(params.dropout) > 0;
  }
  /// True where dropout drops entries of mapped rows, or whole rows.
  bool has_row_dropout() const { return !drops_monomials(params) && dropout_threshold(params.dropout) > 0; }
  /// Numbers of a state [features, dv + 1].
  int64_t state() const { return features * ld; }
  /// Floating-point operations of the product of the features of `length` tokens with a state.
  int64_t pass_flops(int64_t length) const { return 2 * length * features * (dv + 1); }
  /// Number of visible keys of sequence b among keys [from, from + count).
  int64_t visible_keys(const int32_t* lengths, int64_t b, int64_t from, int64_t count) const {
    if (lengths == nullptr) return count;
    return std::clamp<int64_t>(lengths[b] - params.first_key - from, 0, count);
  }
};

/// Copies a state from rows [features, dv + 1], or zeros it where `from` is null.
template <class T>
void load_polynomial_state(const PolynomialPlan<T>& plan, const T* from, T* state) {
  std::fill_n(state, plan.state(), T(0));
  for (int64_t f = 0; from != nullptr && f < plan.features; ++f)
    std::copy_n(from + f * (plan.dv + 1), plan.dv + 1, state + f * plan.ld);
}
/// Copies a state to rows [features, dv + 1].
template <class T>
void save_polynomial_state(const PolynomialPlan<T>& plan, const T* state, T* to) {
  for (int64_t f = 0; f < plan.features; ++f)
    std::copy_n(state + f * plan.ld, plan.dv + 1, to + f * (plan.dv + 1));
}

/// Lane f of the result = sum over tokens c of features[f, c] last[c], for up to one vector of features.
template <class T>
simd::Vector<T> sums_over_tokens(const T* features, int64_t count, int64_t chunk, int64_t width,
                                 const T* last) {
  constexpr int n = simd::Lanes<T>::count;
  simd::Vector<T> part[n];
  for (int64_t r = 0; r < n; ++r) {
    part[r] = simd::Vector<T>{};
    for (int64_t c = 0; r < count && c < width; c += n)
      part[r] += simd::load(features + r * chunk + c) * simd::load(last + c);
  }
  return simd::row_sums<T>(part);
}

/// to[f ld] += sum over tokens c of features[f, c] last[c], for features [count, chunk]: the last column of a
/// state.
template <class T>
void add_ones_column(const T* features, int64_t count, int64_t chunk, int64_t width, const T* last, T* to,
                     int64_t ld) {
  constexpr int n = simd::Lanes<T>::count;
  for (int64_t f = 0; f < count; f += n) {
    const int64_t high = std::min<int64_t>(n, count - f);
    const simd::Vector<T> sums = sums_over_tokens(features + f * chunk, high, chunk, width, last);
    for (int64_t r = 0; r < high; ++r) to[(f + r) * ld] += sums[r];
  }
}

}  // namespace heed::kernel
