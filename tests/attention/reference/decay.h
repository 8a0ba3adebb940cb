// Attentions with decay, and differential attention, as plain double loops.
#pragma once

#include <cmath>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// The map of S_t = a_t S_{t-1} + k_t u_t^T, o_t = S_t^T q_t, row by row with the identity as values. `logs`
/// [N, 1 or d] are log a_t; beta [N, 1] defines u_t = beta_t (v_t - (a_t S_{t-1})^T k_t). Either may be
/// empty. Keys from index `keys` are padding.
inline Matrix faded(const Matrix& q, const Matrix& k, const Matrix& logs, const Matrix& beta, int64_t keys) {
  const int64_t N = q.rows, d = q.columns;
  Matrix state(d, N), map(N, N);
  for (int64_t t = 0; t < N; ++t) {
    for (int64_t r = 0; r < d && logs.rows > 0; ++r) {
      for (int64_t j = 0; j < N; ++j) state.at(r, j) *= std::exp(logs.at(t, logs.columns == 1 ? 0 : r));
    }
    for (int64_t j = 0; j < N && t < keys; ++j) {
      double written = j == t ? 1 : 0;
      for (int64_t r = 0; r < d && beta.rows > 0; ++r) written -= state.at(r, j) * k.at(t, r);
      if (beta.rows > 0) written *= beta.at(t, 0);
      for (int64_t r = 0; r < d; ++r) state.at(r, j) += k.at(t, r) * written;
    }
    for (int64_t j = 0; j < N; ++j) {
      for (int64_t r = 0; r < d; ++r) map.at(t, j) += state.at(r, j) * q.at(t, r);
    }
  }
  return map;
}

/// gamma^(i - j) q_i . k_j of rotated q and k, as in the paper.
inline Matrix retention(const Matrix& q, const Matrix& k, int64_t head, bool rotate, int64_t keys) {
  const double gamma = 1 - std::exp2(-5.0 - static_cast<double>(head));
  const int64_t d = q.columns, even = d / 2 * 2;
  const auto turned = [&](const Matrix& x) {
    Matrix y = x;
    for (int64_t t = 0; t < x.rows && rotate; ++t) {
      for (int64_t p = 0; 2 * p + 1 < d; ++p) {
        const double angle = static_cast<double>(t) *
                             std::pow(10000.0, -2 * static_cast<double>(p) / static_cast<double>(even));
        y.at(t, 2 * p) = x.at(t, 2 * p) * std::cos(angle) - x.at(t, 2 * p + 1) * std::sin(angle);
        y.at(t, 2 * p + 1) = x.at(t, 2 * p) * std::sin(angle) + x.at(t, 2 * p + 1) * std::cos(angle);
      }
    }
    return y;
  };
  const Matrix a = turned(q), b = turned(k);
  Matrix map(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j <= i && j < keys; ++j) {
      map.at(i, j) =
          std::pow(gamma, static_cast<double>(i - j)) * dot(a, i, b, j) / std::sqrt(static_cast<double>(d));
    }
  }
  return map;
}

/// Rows of a map divided by the root mean square of their outputs.
inline Matrix divided_by_size(Matrix map, const Matrix& v, double epsilon, double factor = 1) {
  const Matrix out = apply(map, v);
  for (int64_t i = 0; i < map.rows; ++i) {
    double squares = 0;
    for (int64_t c = 0; c < v.columns; ++c) squares += out.at(i, c) * out.at(i, c);
    const double size = std::sqrt(squares / static_cast<double>(v.columns) + epsilon);
    for (int64_t j = 0; j < map.columns; ++j) map.at(i, j) *= factor / size;
  }
  return map;
}

/// Rows divided by their norms.
inline Matrix unit_rows(Matrix x) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const double size = std::sqrt(dot(x, r, x, r) + 1e-6);
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) /= size;
  }
  return x;
}

inline Matrix scaled(Matrix x, double factor) {
  for (double& value : x.values) value *= factor;
  return x;
}

}  // namespace heed::reference
