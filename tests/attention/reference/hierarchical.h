// H-Transformer-1D and hierarchical attention transformers in plain double loops, with all gradients.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// Result of one head, and the gradients of sum(slope * out).
struct Attended {
  Matrix map, out, dq, dk, dv;
  Matrix dbias = Matrix(0, 0);
};

/// Gradients of out = map v for a softmax map; passes the scores' gradients to `score_slope(i, j, slope)`.
template <class ScoreSlope>
void softmax_back(const Matrix& map, const Matrix& v, const Matrix& slope, Matrix& dv,
                  ScoreSlope&& score_slope) {
  for (int64_t i = 0; i < map.rows; ++i) {
    double mean = 0;
    for (int64_t j = 0; j < map.columns; ++j) mean += map.at(i, j) * dot(slope, i, v, j);
    for (int64_t j = 0; j < map.columns; ++j) {
      for (int64_t c = 0; c < v.columns; ++c) dv.at(j, c) += map.at(i, j) * slope.at(i, c);
      score_slope(i, j, map.at(i, j) * (dot(slope, i, v, j) - mean));
    }
  }
}

/// Zhu and Soricut 2021: one head; the first `length` positions are real.
class Clusters {
 public:
  Clusters(int64_t block, int64_t length, bool causal) : block_(block), length_(length), causal_(causal) {}

  /// `bias` [levels, 4 block - 1] is added to scores by distance of clusters; without rows, none is.
  Attended operator()(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& slope, double scale,
                      const Matrix& bias = Matrix(0, 0)) const {
    const int64_t n = q.rows;
    Attended r{Matrix(n, n),         Matrix(n, v.columns), Matrix(n, q.columns),
               Matrix(n, k.columns), Matrix(n, v.columns), Matrix(bias.rows, bias.columns)};
    const auto away = [&](int64_t i, int64_t j) {
      return (j >> level(i, j)) - (i >> level(i, j)) + 2 * block_ - 1;
    };
    const auto allowed = [&](int64_t i, int64_t j) {
      return i < length_ && j < length_ && (!causal_ || j <= i);
    };
    Matrix scores(n, n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (!allowed(i, j)) continue;
        const std::vector<double> one = query(i, j, n), other = key(i, j, n);
        for (int64_t c = 0; c < q.columns; ++c)
          scores.at(i, j) += scale * weighted(one, q, c) * weighted(other, k, c);
        if (bias.rows > 0) scores.at(i, j) += bias.at(level(i, j), away(i, j));
      }
    }
    r.map = normalised(exponentials(scores, allowed));
    r.out = apply(r.map, v);
    softmax_back(r.map, v, slope, r.dv, [&](int64_t i, int64_t j, double ds) {
      if (!allowed(i, j)) return;
      const std::vector<double> one = query(i, j, n), other = key(i, j, n);
      if (bias.rows > 0) r.dbias.at(level(i, j), away(i, j)) += ds;
      for (int64_t c = 0; c < q.columns; ++c) {
        const double by_q = ds * scale * weighted(other, k, c), by_k = ds * scale * weighted(one, q, c);
        for (int64_t t = 0; t < n; ++t) {
          r.dq.at(t, c) += one[static_cast<size_t>(t)] * by_q;
          r.dk.at(t, c) += other[static_cast<size_t>(t)] * by_k;
        }
      }
    });
    return r;
  }

  /// The first level at which the blocks of both are equal or adjacent.
  int64_t level(int64_t i, int64_t j) const {
    int64_t level = 0;
    while (std::abs((i >> level) / block_ - (j >> level) / block_) > 1) ++level;
    return level;
  }

 private:
  /// The weight of each position in a cluster: a mean over non-empty children.
  std::vector<double> mean(int64_t level, int64_t index, int64_t n) const {
    std::vector<double> out(static_cast<size_t>(n));
    if (level == 0) {
      if (index < length_) out[static_cast<size_t>(index)] = 1;
      return out;
    }
    const std::vector<double> left = mean(level - 1, 2 * index, n), right = mean(level - 1, 2 * index + 1, n);
    const auto there = [](const std::vector<double>& x) {
      return std::any_of(x.begin(), x.end(), [](double w) { return w != 0; }) ? 1.0 : 0.0;
    };
    const double count = std::max(1.0, there(left) + there(right));
    for (size_t t = 0; t < out.size(); ++t) out[t] = (left[t] + right[t]) / count;
    return out;
  }
  std::vector<double> key(int64_t i, int64_t j, int64_t n) const {
    return mean(level(i, j), j >> level(i, j), n);
  }
  std::vector<double> query(int64_t i, int64_t j, int64_t n) const {
    const int64_t l = level(i, j);
    if (!causal_) return mean(l, i >> l, n);
    std::vector<double> out(static_cast<size_t>(n));
    out[static_cast<size_t>(i >> l << l)] = 1;
    return out;
  }
  static double weighted(const std::vector<double>& weights, const Matrix& x, int64_t c) {
    double total = 0;
    for (int64_t t = 0; t < x.rows; ++t) total += weights[static_cast<size_t>(t)] * x.at(t, c);
    return total;
  }

  int64_t block_, length_;
  bool causal_;
};

/// Softmax attention of one head, with gradients.
inline Attended attend_softmax(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& slope,
                               const Allowed& allowed, double scale) {
  Attended r{normalised(softmax(scale)(q, k, allowed)), Matrix(q.rows, v.columns), Matrix(q.rows, q.columns),
             Matrix(k.rows, k.columns), Matrix(v.rows, v.columns)};
  r.out = apply(r.map, v);
  softmax_back(r.map, v, slope, r.dv, [&](int64_t i, int64_t j, double ds) {
    for (int64_t c = 0; c < q.columns; ++c) {
      r.dq.at(i, c) += ds * scale * k.at(j, c);
      r.dk.at(j, c) += ds * scale * q.at(i, c);
    }
  });
  return r;
}

}  // namespace heed::reference
