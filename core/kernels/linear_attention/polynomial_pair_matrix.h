// The pairs of a chunk of keys and a chunk of queries: their scores, weights and gradients, and sums with
// them.
#pragma once

#include "heed/core/kernels/gemm/small_gemm.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"

namespace heed::kernel {

/// Extents of matrices of pairs, [keys, queries] with rows plan.chunk apart, and the functions on them. With
/// `causal` the first key and the first query have the same position, keys <= queries, and a pair counts only
/// where key <= query. Products then skip strips of pairs that do not count; mask_future() zeros the others.
/// Functions that return a number return their floating-point operations.
template <class T>
struct PairMatrix {
  static constexpr int64_t strip = 16;
  /// Strip where pairs are the right factor, whose columns small_gemm() takes several vectors at a time.
  static constexpr int64_t wide_strip = 2 * strip;

  const PolynomialPlan<T>& plan;
  bool causal;
  int64_t keys, queries;
  int64_t padded_queries = simd::padded<T>(queries);  ///< queries in whole vectors

  /// pairs = a^T b, or pairs += a^T b with `add`, for a [depth, keys] and b [depth, queries].
  int64_t product(const T* a, const T* b, int64_t depth, T* pairs, bool add = false) const {
    int64_t flops = 0;
    const int64_t step = causal ? strip : keys;
    for (int64_t j = 0; j < keys; j += step) {
      const int64_t i = first_query(j);
      if (i >= padded_queries) break;
      flops += small_gemm(Left::transposed, std::min(step, keys - j), padded_queries - i, depth, a + j,
                          plan.chunk, b + i, plan.chunk, pairs + j * plan.chunk + i, plan.chunk, add);
    }
    return flops;
  }

  /// Zeros pairs whose key comes after the query.
  void mask_future(T* pairs) const {
    for (int64_t j = 0; causal && j < keys; ++j)
      std::fill_n(pairs + j * plan.chunk, std::min(j, padded_queries), T(0));
  }

  /// Replaces scores s by weights f(s).
  void scores_to_weights(T* scores) const {
    for_vectors(scores, [this](T* s) { simd::store(s, polynomial(plan.coefficients, simd::load(s))); });
    mask_future(scores);
  }
  /// Replaces scores s by weights f(s), and the gradients dw of weights by those of scores, dw f'(s).
  void scores_to_weights(T* scores, T* weight_grads) const {
    for_vectors(scores, [&](T* score) {
      const V s = simd::load(score);
      T* grad = weight_grads + (score - scores);
      simd::store(grad, plan.derivative.empty() ? V{} : simd::load(grad) * polynomial(plan.derivative, s));
      simd::store(score, polynomial(plan.coefficients, s));
    });
    mask_future(scores);
    mask_future(weight_grads);
  }

  /// sums [queries] += sums of the pairs over keys.
  void add_sums(const T* pairs, T* sums) const {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t i = first_query(j); i < padded_queries; i += lanes)
        simd::store(sums + i, simd::load(sums + i) + simd::load(pairs + j * plan.chunk + i));
    }
  }

  /// query_rows [queries, columns] += pairs^T key_rows, for key_rows [keys, columns].
  int64_t sum_over_keys(const T* pairs, Rows<T> key_rows, int64_t columns, T* query_rows) const {
    int64_t flops = 0;
    const int64_t step = causal ? strip : queries;
    for (int64_t i = 0; i < queries; i += step) {
      const int64_t num_keys = causal ? std::min(i + strip, keys) : keys;
      flops += small_gemm(Left::transposed, std::min(step, queries - i), columns, num_keys, pairs + i,
                          plan.chunk, key_rows.data, key_rows.ld, query_rows + i * columns, columns,
                          /*add=*/true);
    }
    return flops;
  }

  /// key_rows [keys, columns] += pairs query_rows, for query_rows [queries, columns].
  int64_t sum_over_queries(const T* pairs, Rows<T> query_rows, int64_t columns, T* key_rows) const {
    int64_t flops = 0;
    const int64_t step = causal ? strip : keys;
    for (int64_t j = 0; j < keys; j += step) {
      const int64_t i = first_query(j);
      if (i >= queries) break;
      flops += small_gemm(Left::row_major, std::min(step, keys - j), columns, queries - i,
                          pairs + j * plan.chunk + i, plan.chunk, query_rows.row(i), query_rows.ld,
                          key_rows + j * columns, columns, /*add=*/true);
    }
    return flops;
  }

  /// query_columns [rows, queries] += key_columns pairs, for key_columns [rows, keys]: sum_over_keys() of
  /// transposed tokens. Call mask_future() on the pairs first.
  int64_t sum_columns_over_keys(const T* key_columns, int64_t rows, const T* pairs, T* query_columns) const {
    int64_t flops = 0;
    const int64_t step = causal ? wide_strip : padded_queries;
    for (int64_t i = 0; i < padded_queries; i += step) {
      const int64_t num_keys = causal ? std::min(i + step, keys) : keys;
      flops += small_gemm(Left::row_major, rows, std::min(step, padded_queries - i), num_keys, key_columns,
                          plan.chunk, pairs + i, plan.chunk, query_columns + i, plan.chunk, /*add=*/true);
    }
    return flops;
  }

  /// key_columns [rows, keys] += query_columns pairs^T, for query_columns [rows, queries]: sum_over_queries()
  /// of transposed tokens. Takes pairs_transposed [queries, keys], which transpose() makes.
  int64_t sum_columns_over_queries(const T* query_columns, int64_t rows, const T* pairs_transposed,
                                   T* key_columns) const {
    const int64_t padded_keys = simd::padded<T>(keys);
    int64_t flops = 0;
    const int64_t step = causal ? wide_strip : padded_keys;
    for (int64_t j = 0; j < padded_keys; j += step) {
      const int64_t i = causal ? j : 0;
      flops += small_gemm(Left::row_major, rows, std::min(step, padded_keys - j), queries - i,
                          query_columns + i, plan.chunk, pairs_transposed + i * plan.chunk + j, plan.chunk,
                          key_columns + j, plan.chunk, /*add=*/true);
    }
    return flops;
  }

  /// transposed [queries, keys] = pairs^T, rows plan.chunk apart, filled with zeros up to whole vectors of
  /// keys. Call mask_future() on the pairs first.
  void transpose(const T* pairs, T* transposed) const {
    simd::scaled_transpose(pairs, plan.chunk, keys, queries, T(1), transposed, plan.chunk);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int lanes = simd::Lanes<T>::count;

  /// The first query whose pair with key j is computed: the first of its strip.
  int64_t first_query(int64_t j) const { return causal ? j / strip * strip : 0; }

  template <class F>
  void for_vectors(T* pairs, F&& f) const {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t i = first_query(j); i < padded_queries; i += lanes) f(pairs + j * plan.chunk + i);
    }
  }
  /// a_0 + a_1 s + a_2 s^2 + ... by Horner's rule.
  static V polynomial(const std::vector<T>& a, V s) {
    if (a.size() == 2) return s * a[1] + a[0];
    if (a.size() == 3) return (s * a[2] + a[1]) * s + a[0];
    V y = simd::splat(a.back());
    for (size_t l = a.size() - 1; l-- > 0;) y = y * s + a[l];
    return y;
  }
};

}  // namespace heed::kernel
