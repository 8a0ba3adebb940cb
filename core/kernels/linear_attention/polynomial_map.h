// The pairs of one chunk of queries and one of keys in Fastmax: scores, weights, and products with them.
#pragma once

#include "core/kernels/fastmax_plan.h"
#include "core/kernels/small_gemm.h"

namespace heed::kernel {

/// Maps lie turned: element [j, i] of key j and query i at j chunk + i. In a triangle only j <= i counts.
template <class T>
struct FastmaxMap {
  static constexpr int64_t strip = 16;
  const FastmaxPlan<T>& plan;
  bool triangle;
  int64_t keys, queries, width;  ///< width: queries in whole vectors

  int64_t first(int64_t j) const { return triangle ? j / strip * strip : 0; }

  /// map[j, i] = a_j . b_i over `depth` rows of each, tokens in lanes.
  int64_t product(const T* a, const T* b, int64_t depth, T* map) const {
    int64_t flops = 0;
    const int64_t step = triangle ? strip : keys;
    for (int64_t j = 0; j < keys; j += step) {
      const int64_t from = first(j);
      if (from >= width) break;
      flops += small_gemm(Left::turned, std::min(step, keys - j), width - from, depth, a + j, plan.chunk,
                          b + from, plan.chunk, map + j * plan.chunk + from, plan.chunk, false);
    }
    return flops;
  }

  /// Zero for keys after the query.
  void cut(T* map) const {
    for (int64_t j = 0; triangle && j < keys; ++j)
      std::fill_n(map + j * plan.chunk, std::min(j, width), T(0));
  }

  /// Scores become weights.
  void weigh(T* map) const {
    each(map, [this](T* at) { simd::store(at, polynomial(plan.weights, simd::load(at))); });
    cut(map);
  }
  /// Scores become weights, and `slopes` (gradients of weights) those of scores.
  void weigh(T* map, T* slopes) const {
    each(map, [&](T* at) {
      const V s = simd::load(at);
      T* slope = slopes + (at - map);
      simd::store(slope, plan.slopes.empty() ? V{} : simd::load(slope) * polynomial(plan.slopes, s));
      simd::store(at, polynomial(plan.weights, s));
    });
    cut(map);
    cut(slopes);
  }

  /// to[i] += sum over j of map[j, i].
  void add_sums(const T* map, T* to) const {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t c = first(j); c < width; c += n)
        simd::store(to + c, simd::load(to + c) + simd::load(map + j * plan.chunk + c));
    }
  }

  /// to[i] (rows of `columns`) += sum over j of map[j, i] b_j.
  int64_t gather(const T* map, Rows<T> b, int64_t columns, T* to) const {
    int64_t flops = 0;
    const int64_t step = triangle ? strip : queries;
    for (int64_t i = 0; i < queries; i += step) {
      const int64_t upto = triangle ? std::min(i + strip, keys) : keys;
      flops += small_gemm(Left::turned, std::min(step, queries - i), columns, upto, map + i, plan.chunk,
                          b.data, b.ld, to + i * columns, columns, true);
    }
    return flops;
  }

  /// to[j] (rows of `columns`) += sum over i of map[j, i] b_i.
  int64_t spread(const T* map, Rows<T> b, int64_t columns, T* to) const {
    int64_t flops = 0;
    const int64_t step = triangle ? strip : keys;
    for (int64_t j = 0; j < keys; j += step) {
      const int64_t from = first(j);
      if (from >= queries) break;
      flops += small_gemm(Left::straight, std::min(step, keys - j), columns, queries - from,
                          map + j * plan.chunk + from, plan.chunk, b.from(from).data, b.ld, to + j * columns,
                          columns, true);
    }
    return flops;
  }

  /// to[r, i] += sum over j of a[r, j] map[j, i] for `rows` rows, tokens in lanes. The map is cut.
  int64_t gather_turned(const T* a, int64_t rows, const T* map, T* to) const {
    int64_t flops = 0;
    const int64_t step = triangle ? 2 * strip : width;
    for (int64_t i = 0; i < width; i += step) {
      flops += small_gemm(Left::straight, rows, std::min(step, width - i),
                          triangle ? std::min(i + step, keys) : keys, a, plan.chunk, map + i, plan.chunk,
                          to + i, plan.chunk, true);
    }
    return flops;
  }

  /// to[r, j] += sum over i of a[r, i] turned[i, j] for `rows` rows, tokens in lanes.
  int64_t spread_turned(const T* a, int64_t rows, const T* turned, T* to) const {
    const int64_t wide = simd::padded<T>(keys);
    int64_t flops = 0;
    const int64_t step = triangle ? 2 * strip : wide;
    for (int64_t j = 0; j < wide; j += step) {
      const int64_t from = triangle ? j : 0;
      flops += small_gemm(Left::straight, rows, std::min(step, wide - j), queries - from, a + from,
                          plan.chunk, turned + from * plan.chunk + j, plan.chunk, to + j, plan.chunk, true);
    }
    return flops;
  }

  /// The map with its sides changed: [queries, keys] at i chunk + j. The map is cut.
  void turn(const T* map, T* to) const { simd::turn(map, plan.chunk, keys, queries, T(1), to, plan.chunk); }

 private:
  using V = simd::Vector<T>;
  static constexpr int n = simd::Lanes<T>::count;

  template <class F>
  void each(T* map, F&& f) const {
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
