// Attention that selects keys or queries by content, in plain loops: hashing and sampled measures.
#pragma once

#include <algorithm>
#include <numeric>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// Settings of reformer().
struct Hashing {
  int64_t rounds = 1, chunk = 4, buckets = 4;
  bool causal = false, by_bucket = false, ring = true, once = false;
  double scale = 1;
};

/// The index of the first maximum of [x R, -x R]; rotations [d, buckets / 2].
inline int64_t hash_of(const Matrix& x, int64_t row, const Matrix& rotations) {
  std::vector<double> turned;
  for (const double sign : {1.0, -1.0}) {
    for (int64_t c = 0; c < rotations.columns; ++c) {
      double total = 0;
      for (int64_t i = 0; i < x.columns; ++i) total += sign * x.at(row, i) * rotations.at(i, c);
      turned.push_back(total);
    }
  }
  return std::max_element(turned.begin(), turned.end()) - turned.begin();
}

/// The first n tokens, ordered by (bucket, position).
inline std::vector<int64_t> hashed_order(const std::vector<int64_t>& bucket, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return bucket[static_cast<size_t>(a)] < bucket[static_cast<size_t>(b)];
  });
  return order;
}

/// How often query i attends to key j over all rounds, among the first n tokens. Kitaev et al. 2020, section
/// 2.
inline Matrix meetings(const Matrix& q, const std::vector<Matrix>& rotations, const Hashing& o, int64_t n) {
  Matrix met(q.rows, q.rows);
  std::vector<std::vector<int64_t>> buckets, orders;
  for (const Matrix& rotation : rotations) {
    buckets.emplace_back();
    for (int64_t i = 0; i < q.rows; ++i) buckets.back().push_back(hash_of(q, i, rotation));
    orders.push_back(hashed_order(buckets.back(), n));
  }
  const auto rounds = static_cast<int64_t>(rotations.size());
  for (int64_t r = 0; r < rounds; ++r) {
    const auto& order = orders[static_cast<size_t>(r)];
    const auto& bucket = buckets[static_cast<size_t>(r)];
    for (int64_t place = 0; place < n; ++place) {
      const int64_t i = order[static_cast<size_t>(place)];
      if (o.by_bucket) {
        int64_t left = o.chunk;
        for (int64_t j = i; j >= 0 && left > 0; --j) {
          if (bucket[static_cast<size_t>(j)] != bucket[static_cast<size_t>(i)]) continue;
          met.at(i, j) += 1;
          --left;
        }
        continue;
      }
      const auto see_chunk = [&](int64_t round, int64_t chunk) {
        for (int64_t p = chunk * o.chunk; p < std::min(n, (chunk + 1) * o.chunk); ++p) {
          const int64_t j = orders[static_cast<size_t>(round)][static_cast<size_t>(p)];
          if (!o.causal || j <= i) met.at(i, j) += 1;
        }
      };
      const int64_t own = place / o.chunk, last = (n - 1) / o.chunk;
      see_chunk(r, own);
      if (own > 0)
        see_chunk(r, own - 1);
      else
        see_chunk(o.ring ? (r + rounds - 1) % rounds : r, last);
    }
  }
  return met;
}

/// The map of Reformer, with keys of unit length; a token's score with itself is reduced by 1e5.
inline Matrix reformer(const Matrix& q, const Matrix& k, const std::vector<Matrix>& rotations,
                       const Hashing& o, int64_t n) {
  const Matrix met = meetings(q, rotations, o, n);
  Matrix scores(q.rows, q.rows);
  for (int64_t j = 0; j < q.rows; ++j) {
    double squares = 1e-6 * static_cast<double>(q.columns);
    for (int64_t c = 0; c < q.columns; ++c) squares += k.at(j, c) * k.at(j, c);
    for (int64_t i = 0; i < q.rows; ++i) {
      const double times = o.once ? 1 : std::max(1.0, met.at(i, j));
      scores.at(i, j) = o.scale * dot(q, i, k, j) / std::sqrt(squares) + std::log(times) - (i == j ? 1e5 : 0);
    }
  }
  return normalised(exponentials(scores, [&](int64_t i, int64_t j) { return met.at(i, j) > 0; }));
}

/// The exact queries: the `count` largest max s - sum s / keys over the keys in row i of samples, in ties the
/// first. Zhou et al. 2021, algorithm 1, divided as in the authors' code.
inline std::vector<bool> prob_sparse_rows(const Matrix& q, const Matrix& k, const Matrix& samples,
                                          int64_t count, int64_t queries, int64_t keys) {
  std::vector<std::pair<double, int64_t>> measures;
  for (int64_t i = 0; i < queries; ++i) {
    double largest_value = -HUGE_VAL, total = 0;
    for (int64_t u = 0; u < samples.columns; ++u) {
      const double score = dot(q, i, k, static_cast<int64_t>(samples.at(i, u)) % keys);
      largest_value = std::max(largest_value, score);
      total += score;
    }
    measures.emplace_back(-(largest_value - total / static_cast<double>(keys)), i);
  }
  std::sort(measures.begin(), measures.end());
  std::vector<bool> exact(static_cast<size_t>(q.rows));
  for (int64_t n = 0; n < std::min(count, queries); ++n)
    exact[static_cast<size_t>(measures[static_cast<size_t>(n)].second)] = true;
  return exact;
}

/// The causal version: query i is exact if fewer than `rank` earlier queries reach its measure, whose mean is
/// over the sampled keys j <= i; at most `most` queries.
inline std::vector<bool> prob_sparse_records(const Matrix& q, const Matrix& k, const Matrix& samples,
                                             int64_t rank, int64_t largest_value, int64_t length) {
  std::vector<double> measures;
  std::vector<bool> exact(static_cast<size_t>(q.rows));
  for (int64_t i = 0; i < length; ++i) {
    double greatest = -HUGE_VAL, total = 0;
    for (int64_t u = 0; u < samples.columns; ++u) {
      const double score = dot(q, i, k, static_cast<int64_t>(samples.at(i, u)) % (i + 1));
      greatest = std::max(greatest, score);
      total += score;
    }
    const double measure = greatest - total / static_cast<double>(samples.columns);
    const auto reach =
        std::count_if(measures.begin(), measures.end(), [&](double m) { return m >= measure; });
    measures.push_back(measure);
    if (reach < rank && std::count(exact.begin(), exact.end(), true) < largest_value)
      exact[static_cast<size_t>(i)] = true;
  }
  return exact;
}

/// Softmax of q k^T / sqrt(d) in exact rows; elsewhere the mean of `keys` values, or if causal the sum or
/// mean of earlier values.
inline Matrix prob_sparse(const Matrix& q, const Matrix& k, const std::vector<bool>& exact, int64_t keys,
                          bool causal, bool mean) {
  Matrix map = normalised(softmax(1 / std::sqrt(static_cast<double>(q.columns)))(
      q, k, [&](int64_t i, int64_t j) { return j < keys && (!causal || j <= i); }));
  for (int64_t i = 0; i < q.rows; ++i) {
    if (exact[static_cast<size_t>(i)]) continue;
    for (int64_t j = 0; j < k.rows; ++j) {
      const bool open = j < keys && (!causal || j <= i);
      const double share = causal ? (mean ? 1.0 / static_cast<double>(std::min(i + 1, keys)) : 1.0)
                                  : 1.0 / static_cast<double>(keys);
      map.at(i, j) = open ? share : 0;
    }
  }
  return map;
}

}  // namespace heed::reference
