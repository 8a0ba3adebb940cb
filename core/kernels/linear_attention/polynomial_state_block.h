// Products of the features of one block with its rows of a state, a span of 16 tokens at a time. With dropout
// of monomials the weight of a pair is no function of its score, so each span of tokens is added to the state
// before the next span reads it, and the weights of pairs within a span are products of features.
//
// A state [features, dv + 1] is the sum over tokens of features times [values, sum factor]. For keys the
// values are v and the factor is 1, so its last column, the sum column, holds the sums of the keys' features.
// For queries they are gradients: of the weighted sum of values, and of the sum of weights.
#pragma once

#include "heed/core/kernels/gemm/small_gemm.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"

namespace heed::kernel {

/// Lane f of the result = sum over tokens c of features[f, c] sum_factors[c], for up to one vector of
/// features: their numbers in the sum column.
template <class T>
simd::Vector<T> sum_column_of(const PolynomialPlan<T>& plan, const T* features, int64_t num_features,
                              int64_t padded_tokens, const T* sum_factors) {
  constexpr int lanes = simd::Lanes<T>::count;
  simd::Vector<T> part[lanes];
  for (int64_t f = 0; f < lanes; ++f) {
    part[f] = simd::Vector<T>{};
    for (int64_t c = 0; f < num_features && c < padded_tokens; c += lanes)
      part[f] += simd::load(features + f * plan.chunk + c) * simd::load(sum_factors + c);
  }
  return simd::row_sums<T>(part);
}

/// rows [count, dv + 1] of a state += features [values, sum_factors], for features [count, tokens], values
/// [tokens, dv] and sum_factors [tokens]. Returns the operations.
template <class T>
int64_t add_to_state(const PolynomialPlan<T>& plan, int64_t count, const T* features, int64_t tokens,
                     Rows<T> values, const T* sum_factors, T* rows) {
  constexpr int lanes = simd::Lanes<T>::count;
  const int64_t padded_tokens = simd::padded<T>(tokens);
  const int64_t flops = small_gemm(Left::row_major, count, plan.padded_dv, tokens, features, plan.chunk,
                                   values.data, values.ld, rows, plan.state_ld, /*add=*/true);
  for (int64_t first = 0; first < count; first += lanes) {
    const int64_t num_features = std::min<int64_t>(lanes, count - first);
    const simd::Vector<T> sums =
        sum_column_of(plan, features + first * plan.chunk, num_features, padded_tokens, sum_factors);
    for (int64_t f = 0; f < num_features; ++f) rows[(first + f) * plan.state_ld + plan.dv] += sums[f];
  }
  return flops + 2 * count * padded_tokens;
}

/// The rows of a block in a state. While this lives, the sum column is kept in a contiguous array, because
/// every span reads and writes it as vectors. Functions return their floating-point operations.
template <class T>
class StateBlock {
 public:
  StateBlock(const PolynomialPlan<T>& plan, const FeatureBlock& block, T* state)
      : plan_(plan), count_(block.count), rows_(plan.rows_of(block, state)) {
    for (int64_t f = 0; f < count_; ++f) sum_column_[f] = rows_[f * plan_.state_ld + plan_.dv];
  }
  ~StateBlock() {
    for (int64_t f = 0; f < count_; ++f) rows_[f * plan_.state_ld + plan_.dv] = sum_column_[f];
  }
  StateBlock(const StateBlock&) = delete;
  StateBlock& operator=(const StateBlock&) = delete;

  /// rows += features values and sum_column += features sum_factors, for features [count, tokens], values
  /// [tokens, dv] and sum_factors [tokens].
  int64_t add(const T* features, int64_t tokens, Rows<T> values, const T* sum_factors) {
    const int64_t padded_tokens = simd::padded<T>(tokens);
    const int64_t flops = small_gemm(Left::row_major, count_, plan_.padded_dv, tokens, features, plan_.chunk,
                                     values.data, values.ld, rows_, plan_.state_ld, /*add=*/true);
    for (int64_t f = 0; f < count_; f += lanes) {
      const V sums = sum_column_of(plan_, features + f * plan_.chunk, std::min<int64_t>(lanes, count_ - f),
                                   padded_tokens, sum_factors);
      simd::store(sum_column_ + f, simd::load(sum_column_ + f) + sums);
    }
    return flops + 2 * count_ * padded_tokens;
  }

  /// out [tokens, dv] += features^T rows; with `sums` also sums [tokens] += features^T sum_column.
  int64_t read(const T* features, int64_t tokens, T* out, T* sums) const {
    const int64_t flops = small_gemm(Left::transposed, tokens, plan_.padded_dv, count_, features, plan_.chunk,
                                     rows_, plan_.state_ld, out, plan_.padded_dv, /*add=*/true);
    if (sums == nullptr) return flops;
    constexpr int64_t num_parts = 4;  // independent sums hide the latency of additions
    for (int64_t c = 0; c < tokens; c += lanes) {
      V part[num_parts] = {simd::load(sums + c), V{}, V{}, V{}};
      for (int64_t f = 0; f < count_; f += num_parts) {
        for (int64_t i = 0; i < num_parts && f + i < count_; ++i)
          part[i] += sum_column_[f + i] * simd::load(features + (f + i) * plan_.chunk + c);
      }
      simd::store(sums + c, (part[0] + part[1]) + (part[2] + part[3]));
    }
    return flops + 2 * count_ * simd::padded<T>(tokens);
  }

  /// feature_grads [count, tokens] = rows values + sum_column sum_factors^T, for values [dv, tokens] and
  /// sum_factors [tokens].
  int64_t make_feature_grads(const T* values, const T* sum_factors, int64_t tokens, T* feature_grads) const {
    const int64_t padded_tokens = simd::padded<T>(tokens);
    const int64_t flops = small_gemm(Left::row_major, count_, padded_tokens, plan_.dv, rows_, plan_.state_ld,
                                     values, plan_.chunk, feature_grads, plan_.chunk, /*add=*/false);
    for (int64_t f = 0; f < count_; ++f) {
      for (int64_t c = 0; c < padded_tokens; c += lanes) {
        T* grad = feature_grads + f * plan_.chunk + c;
        simd::store(grad, simd::load(grad) + sum_column_[f] * simd::load(sum_factors + c));
      }
    }
    return flops + 2 * count_ * padded_tokens;
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int lanes = simd::Lanes<T>::count;

  const PolynomialPlan<T>& plan_;
  int64_t count_;                                                         // features
  T* rows_;                                                               // [count, dv] of the state
  alignas(64) T sum_column_[PolynomialPlan<T>::block_rows + lanes] = {};  // [count]
};

/// Zeros feature_grads [block.count, padded_tokens], rows plan.chunk apart.
template <class T>
void clear_block(const PolynomialPlan<T>& plan, const FeatureBlock& block, int64_t padded_tokens,
                 T* feature_grads) {
  for (int64_t f = 0; f < block.count; ++f) std::fill_n(feature_grads + f * plan.chunk, padded_tokens, T(0));
}

/// A span of the tokens of a causal chunk: its first token and its numbers of queries and of visible keys.
struct Span {
  int64_t first, queries, keys;
};

/// The span from token `first` on of a chunk of `queries` queries and `visible` visible keys.
template <class T>
Span span_at(const PolynomialPlan<T>& plan, int64_t first, int64_t queries, int64_t visible) {
  const int64_t span_queries = std::min(plan.span, queries - first);
  return {
      .first = first, .queries = span_queries, .keys = std::clamp<int64_t>(visible - first, 0, span_queries)};
}
/// Calls f(Span) for each span of a chunk, in order.
template <class T, class F>
void each_span(const PolynomialPlan<T>& plan, int64_t queries, int64_t visible, F&& f) {
  for (int64_t first = 0; first < queries; first += plan.span) f(span_at(plan, first, queries, visible));
}

}  // namespace heed::kernel
