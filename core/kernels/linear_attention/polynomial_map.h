// The pairs of one chunk of queries and one chunk of keys: their scores and weights, and products with them.
#pragma once

#include "heed/core/kernels/gemm/small_gemm.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"

namespace heed::kernel {

/// Products of maps [keys, queries], rows `chunk` apart. With `triangle` only pairs with key <= query are
/// used, so products skip the parts of a map that are zero, in strips of 16.
template <class T>
struct PolynomialMap {
  static constexpr int64_t strip = 16;
  const PolynomialPlan<T>& plan;
  bool triangle;
  int64_t keys, queries, width;  ///< width: queries in whole vectors

  /// The first query whose pair with key j is computed.
  int64_t first(int64_t j) const { return triangle ? j / strip * strip : 0; }

  /// map [keys, queries] = a^T b, or += with `add`, for a [depth, keys] and b [depth, queries].
  int64_t product(const T* a, const T* b, int64_t depth, T* map, bool add = false) const {
    int64_t flops = 0;
    const int64_t step = triangle ? strip : keys;
    for (int64_t j = 0; j < keys; j += step) {
      const int64_t from = first(j);
      if (from >= width) break;
      flops += small_gemm(Left::transposed, std::min(step, keys - j), width - from, depth, a + j, plan.chunk,
                          b + from, plan.chunk, map + j * plan.chunk + from, plan.chunk, add);
    }
    return flops;
  }

  /// Zeroes pairs whose key comes after the query.
  void mask_future(T* map) const {
    for (int64_t j = 0; triangle && j < keys; ++j)
      std::fill_n(map + j * plan.chunk, std::min(j, width), T(0));
  }

  /// Replaces scores by weights f(s).
  void scores_to_weights(T* map) const {
    for_vectors(map, [this](T* at) { simd::store(at, polynomial(plan.coefficients, simd::load(at))); });
    mask_future(map);
  }
  /// Replaces scores s by weights f(s), and `grads`, the gradients of weights, by those of scores: grads
  /// f'(s).
  void scores_to_weights(T* map, T* grads) const {
    for_vectors(map, [&](T* at) {
      const V s = simd::load(at);
      T* grad = grads + (at - map);
      simd::store(grad, plan.derivative.empty() ? V{} : simd::load(grad) * polynomial(plan.derivative, s));
      simd::store(at, polynomial(plan.coefficients, s));
    });
    mask_future(map);
    mask_future(grads);
  }

  /// to [queries] += sums of the map over keys.
  void add_sums(const T* map, T* to) const {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t c = first(j); c < width; c += n)
        simd::store(to + c, simd::load(to + c) + simd::load(map + j * plan.chunk + c));
    }
  }

  /// to [queries, columns] += map^T b, for b [keys, columns].
  int64_t gather(const T* map, Rows<T> b, int64_t columns, T* to) const {
    int64_t flops = 0;
    const int64_t step = triangle ? strip : queries;
    for (int64_t i = 0; i < queries; i += step) {
      const int64_t end = triangle ? std::min(i + strip, keys) : keys;
      flops += small_gemm(Left::transposed, std::min(step, queries - i), columns, end, map + i, plan.chunk,
                          b.data, b.ld, to + i * columns, columns, true);
    }
    return flops;
  }

  /// to [keys, columns] += map b, for b [queries, columns].
  int64_t scatter(const T* map, Rows<T> b, int64_t columns, T* to) const {
    int64_t flops = 0;
    const int64_t step = triangle ? strip : keys;
    for (int64_t j = 0; j < keys; j += step) {
      const int64_t from = first(j);
      if (from >= queries) break;
      flops += small_gemm(Left::row_major, std::min(step, keys - j), columns, queries - from,
                          map + j * plan.chunk + from, plan.chunk, b.from(from).data, b.ld, to + j * columns,
                          columns, true);
    }
    return flops;
  }

  /// to [rows, queries] += a map, for a [rows, keys]. Call mask_future() on the map first.
  int64_t gather_transposed(const T* a, int64_t rows, const T* map, T* to) const {
    int64_t flops = 0;
    const int64_t step = triangle ? 2 * strip : width;
    for (int64_t i = 0; i < width; i += step) {
      flops += small_gemm(Left::row_major, rows, std::min(step, width - i),
                          triangle ? std::min(i + step, keys) : keys, a, plan.chunk, map + i, plan.chunk,
                          to + i, plan.chunk, true);
    }
    return flops;
  }

  /// to [rows, keys] += a transposed, for a [rows, queries] and `transposed` [queries, keys], the map
  /// transposed.
  int64_t scatter_transposed(const T* a, int64_t rows, const T* transposed, T* to) const {
    const int64_t padded_keys = simd::padded<T>(keys);
    int64_t flops = 0;
    const int64_t step = triangle ? 2 * strip : padded_keys;
    for (int64_t j = 0; j < padded_keys; j += step) {
      const int64_t from = triangle ? j : 0;
      flops +=
          small_gemm(Left::row_major, rows, std::min(step, padded_keys - j), queries - from, a + from,
                     plan.chunk, transposed + from * plan.chunk + j, plan.chunk, to + j, plan.chunk, true);
    }
    return flops;
  }

  /// to [queries, keys] = the transposed map, rows `chunk` apart. Call mask_future() on the map first.
  void transpose(const T* map, T* to) const {
    simd::scaled_transpose(map, plan.chunk, keys, queries, T(1), to, plan.chunk);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int n = simd::Lanes<T>::count;

  template <class F>
  void for_vectors(T* map, F&& f) const {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t c = first(j); c < width; c += n) f(map + j * plan.chunk + c);
    }
  }
  static V polynomial(const std::vector<T>& a, V s) {
    if (a.size() == 2) return s * a[1] + a[0];
    if (a.size() == 3) return (s * a[2] + a[1]) * s + a[0];
    V y = simd::splat(a.back());
    for (size_t l = a.size() - 1; l-- > 0;) y = y * s + a[l];
    return y;
  }
};

}  // namespace heed::kernel
