// Routing attention in plain loops. Roy et al. 2021, algorithm 1.
#pragma once

#include <algorithm>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// Cosines of rows of x with unit centroids [C, d].
inline Matrix cosines(const Matrix& x, const Matrix& centroids) {
  Matrix out(x.rows, centroids.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < centroids.rows; ++c)
      out.at(i, c) = dot(x, i, centroids, c) / std::sqrt(dot(x, i, x, i) + 1e-12);
  }
  return out;
}

/// True for the `window` rows, of the first n, that are nearest to centroid c.
inline std::vector<bool> taken_by(const Matrix& nearness, int64_t c, int64_t n, int64_t window) {
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t i = 0; i < n; ++i) order.emplace_back(-nearness.at(i, c), i);
  std::sort(order.begin(), order.end());
  std::vector<bool> in(static_cast<size_t>(nearness.rows));
  for (int64_t place = 0; place < std::min(n, window); ++place)
    in[static_cast<size_t>(order[static_cast<size_t>(place)].second)] = true;
  return in;
}

/// Each centroid joins its nearest queries and keys (in a decoder keys follow their queries); a query's maps
/// are averaged over its centroids.
inline Matrix routing(const Matrix& q, const Matrix& k, const Matrix& centroids, int64_t window, int64_t n,
                      bool causal) {
  const Matrix near_q = cosines(q, centroids), near_k = cosines(causal ? q : k, centroids);
  Matrix map(q.rows, k.rows);
  std::vector<double> homes(static_cast<size_t>(q.rows));
  for (int64_t c = 0; c < centroids.rows; ++c) {
    const auto queries = taken_by(near_q, c, n, window), keys = taken_by(near_k, c, n, window);
    const Matrix part =
        normalised(softmax(1 / std::sqrt(static_cast<double>(q.columns)))(q, k, [&](int64_t i, int64_t j) {
          return queries[static_cast<size_t>(i)] && keys[static_cast<size_t>(j)] && (!causal || j <= i);
        }));
    for (int64_t i = 0; i < q.rows; ++i)
      homes[static_cast<size_t>(i)] += queries[static_cast<size_t>(i)] ? 1 : 0;
    for (size_t e = 0; e < map.values.size(); ++e) map.values[e] += part.values[e];
  }
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) map.at(i, j) /= std::max(1.0, homes[static_cast<size_t>(i)]);
  }
  return map;
}

/// The decoder's version: a token attends to the last `window` tokens nearest to the same centroid, itself
/// included.
inline Matrix routing_nearest(const Matrix& q, const Matrix& k, const Matrix& centroids, int64_t window,
                              int64_t n) {
  const Matrix near = cosines(q, centroids);
  std::vector<int64_t> home;
  for (int64_t i = 0; i < q.rows; ++i) {
    int64_t best = 0;
    for (int64_t c = 1; c < centroids.rows; ++c) best = near.at(i, c) > near.at(i, best) ? c : best;
    home.push_back(best);
  }
  Matrix seen(q.rows, q.rows);
  for (int64_t i = 0; i < n; ++i) {
    int64_t left = window;
    for (int64_t j = i; j >= 0 && left > 0; --j) {
      if (home[static_cast<size_t>(i)] != home[static_cast<size_t>(j)]) continue;
      seen.at(i, j) = 1;
      --left;
    }
  }
  return normalised(softmax(1 / std::sqrt(static_cast<double>(q.columns)))(
      q, k, [&](int64_t i, int64_t j) { return seen.at(i, j) > 0; }));
}

}  // namespace heed::reference
