// Sparse Sinkhorn attention in plain loops. Tay et al. 2020, sections 3 and 4.
#pragma once

#include <algorithm>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// Settings of sorting the first n tokens in blocks.
struct Sorting {
  int64_t block = 4, iterations = 8, n = 0;
  double temperature = 0.75;
  bool causal = false;

  int64_t blocks() const { return (n + block - 1) / block; }
  int64_t size_of(int64_t at) const { return std::min(block, n - at * block); }
};

/// The sorting matrix R [blocks, blocks] of the blocks with tokens.
inline Matrix sinkhorn_order(const Matrix& q, const Matrix& k, const Sorting& o) {
  const int64_t blocks = o.blocks();
  Matrix r(blocks, blocks);
  for (int64_t i = 0; i < blocks; ++i) {
    for (int64_t j = 0; j < blocks; ++j) {
      double logit = 0;
      for (int64_t c = 0; c < q.columns; ++c) {
        double of_query = 0, of_key = 0;
        for (int64_t t = 0; t < o.size_of(i); ++t)
          of_query += q.at(i * o.block + t, c) / static_cast<double>(o.size_of(i));
        for (int64_t t = 0; t < o.size_of(j); ++t)
          of_key += k.at(j * o.block + t, c) / static_cast<double>(o.size_of(j));
        logit += (o.causal ? q.at(i * o.block, c) : of_query) * of_key;
      }
      const bool open = !o.causal || j < i;
      r.at(i, j) = open ? std::exp(logit / std::sqrt(static_cast<double>(q.columns)) / o.temperature) : 0;
    }
  }
  for (int64_t round = 0; round < o.iterations; ++round) {
    for (int64_t i = 0; i < blocks; ++i) {
      double total = 0;
      for (int64_t j = 0; j < blocks; ++j) total += r.at(i, j);
      for (int64_t j = 0; j < blocks; ++j) r.at(i, j) /= total > 0 ? total : 1;
    }
    for (int64_t j = 0; j < blocks; ++j) {
      double whole = 0, so_far = 0;
      for (int64_t i = 0; i < blocks; ++i) whole += r.at(i, j);
      for (int64_t i = 0; i < blocks; ++i) {
        so_far += r.at(i, j);
        const double total = o.causal ? so_far : whole;
        r.at(i, j) /= total > 0 ? total : 1;
      }
    }
  }
  return r;
}

/// The map: a query's softmax over its own block and the sorted one, whose weights are spread over their
/// sources.
inline Matrix sinkhorn(const Matrix& q, const Matrix& k, const Matrix& r, const Sorting& o) {
  const int64_t b = o.block;
  Matrix map(q.rows, k.rows);
  for (int64_t i = 0; i < o.n; ++i) {
    const int64_t own = i / b;
    Matrix keys(2 * b, k.columns), query(1, q.columns);
    for (int64_t c = 0; c < q.columns; ++c) query.at(0, c) = q.at(i, c);
    std::vector<bool> open(static_cast<size_t>(2 * b));
    for (int64_t p = 0; p < b; ++p) {
      open[static_cast<size_t>(p)] = o.causal ? own > 0 : p < o.n;
      open[static_cast<size_t>(b + p)] = own * b + p < o.n && (!o.causal || own * b + p <= i);
      for (int64_t c = 0; c < k.columns; ++c) {
        for (int64_t j = 0; j < o.blocks(); ++j)
          keys.at(p, c) += p < o.size_of(j) ? r.at(own, j) * k.at(j * b + p, c) : 0;
        if (own * b + p < o.n) keys.at(b + p, c) = k.at(own * b + p, c);
      }
    }
    const Matrix row = normalised(softmax(1 / std::sqrt(static_cast<double>(q.columns)))(
        query, keys, [&](int64_t, int64_t e) { return open[static_cast<size_t>(e)]; }));
    for (int64_t p = 0; p < b; ++p) {
      for (int64_t j = 0; j < o.blocks(); ++j) {
        if (p < o.size_of(j)) map.at(i, j * b + p) += row.at(0, p) * r.at(own, j);
      }
      if (own * b + p < o.n) map.at(i, own * b + p) += row.at(0, b + p);
    }
  }
  return map;
}

}  // namespace heed::reference
