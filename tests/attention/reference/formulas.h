// Formulas of attentions as plain double loops: references for the modules.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace heed::reference {

/// A matrix of doubles.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;

  Matrix(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {}
  Matrix(int64_t r, int64_t c, std::vector<double> v) : rows(r), columns(c), values(std::move(v)) {}
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * columns + c)]; }
};

/// x W^T
inline Matrix project(const Matrix& x, const Matrix& weight) {
  Matrix y(x.rows, weight.rows);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.columns; ++c) {
      for (int64_t i = 0; i < x.columns; ++i) y.at(r, c) += x.at(r, i) * weight.at(c, i);
    }
  }
  return y;
}

/// Columns first <= c < first + count.
inline Matrix columns(const Matrix& x, int64_t first, int64_t count) {
  Matrix y(x.rows, count);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < count; ++c) y.at(r, c) = x.at(r, first + c);
  }
  return y;
}

/// True if query i may attend to key j.
using Allowed = std::function<bool(int64_t i, int64_t j)>;
/// The weight of each pair before normalisation; 0 where it is not allowed.
using Weigh = std::function<Matrix(const Matrix& q, const Matrix& k, const Allowed& allowed)>;

/// Exponentials of scores, divided by the row's largest allowed one.
inline Matrix exponentials(const Matrix& scores, const Allowed& allowed) {
  Matrix out(scores.rows, scores.columns);
  for (int64_t i = 0; i < scores.rows; ++i) {
    double largest = -HUGE_VAL;
    for (int64_t j = 0; j < scores.columns; ++j) {
      if (allowed(i, j)) largest = std::max(largest, scores.at(i, j));
    }
    for (int64_t j = 0; j < scores.columns; ++j)
      out.at(i, j) = allowed(i, j) ? std::exp(scores.at(i, j) - largest) : 0;
  }
  return out;
}

inline double dot(const Matrix& a, int64_t i, const Matrix& b, int64_t j) {
  double total = 0;
  for (int64_t c = 0; c < a.columns; ++c) total += a.at(i, c) * b.at(j, c);
  return total;
}

/// exp(q_i . k_j scale). Vaswani et al. 2017.
inline Weigh softmax(double scale) {
  return [scale](const Matrix& q, const Matrix& k, const Allowed& allowed) {
    Matrix scores(q.rows, k.rows);
    for (int64_t i = 0; i < q.rows; ++i) {
      for (int64_t j = 0; j < k.rows; ++j) scores.at(i, j) = dot(q, i, k, j) * scale;
    }
    return exponentials(scores, allowed);
  };
}

/// exp(u . tanh(A q_i + C k_j + b)), with A and C as [d, units]. Bahdanau et al. 2015.
inline Weigh additive(const Matrix& a, const Matrix& c, const Matrix& b, const Matrix& u) {
  return [=](const Matrix& q, const Matrix& k, const Allowed& allowed) {
    Matrix scores(q.rows, k.rows);
    for (int64_t i = 0; i < q.rows; ++i) {
      for (int64_t j = 0; j < k.rows; ++j) {
        for (int64_t unit = 0; unit < u.rows; ++unit) {
          double inside = b.at(0, unit);
          for (int64_t x = 0; x < q.columns; ++x)
            inside += q.at(i, x) * a.at(x, unit) + k.at(j, x) * c.at(x, unit);
          scores.at(i, j) += u.at(unit, 0) * std::tanh(inside);
        }
      }
    }
    return exponentials(scores, allowed);
  };
}

/// phi(q_i) . phi(k_j) with phi = elu + 1. Katharopoulos et al. 2020.
inline Matrix elu_features(const Matrix& q, const Matrix& k, const Allowed& allowed) {
  const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
  Matrix out(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) {
      for (int64_t c = 0; c < q.columns && allowed(i, j); ++c)
        out.at(i, j) += phi(q.at(i, c)) * phi(k.at(j, c));
    }
  }
  return out;
}

/// Rows of weights divided by their sum plus epsilon; a row without keys is zero.
inline Matrix normalised(Matrix weights, double epsilon = 0) {
  for (int64_t i = 0; i < weights.rows; ++i) {
    double total = epsilon;
    for (int64_t j = 0; j < weights.columns; ++j) total += weights.at(i, j);
    for (int64_t j = 0; j < weights.columns; ++j) weights.at(i, j) = total > 0 ? weights.at(i, j) / total : 0;
  }
  return weights;
}

/// map v
inline Matrix apply(const Matrix& map, const Matrix& v) {
  Matrix y(map.rows, v.columns);
  for (int64_t i = 0; i < y.rows; ++i) {
    for (int64_t c = 0; c < y.columns; ++c) {
      for (int64_t j = 0; j < v.rows; ++j) y.at(i, c) += map.at(i, j) * v.at(j, c);
    }
  }
  return y;
}

}  // namespace heed::reference
