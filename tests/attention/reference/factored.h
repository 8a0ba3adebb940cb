// Attention with factored maps, as plain loops over pairs.
#pragma once

#include <algorithm>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// Rows minus their mean, divided by their standard deviation; or divided by their norm.
inline Matrix standardised(Matrix x, double epsilon = 1e-6) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const double d = static_cast<double>(x.columns);
    double mean = 0, square = 0;
    for (int64_t c = 0; c < x.columns; ++c) mean += x.at(r, c) / d;
    for (int64_t c = 0; c < x.columns; ++c) square += (x.at(r, c) - mean) * (x.at(r, c) - mean) / d;
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) = (x.at(r, c) - mean) / std::sqrt(square + epsilon);
  }
  return x;
}
inline Matrix unit_rows(Matrix x) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const double length = std::sqrt(dot(x, r, x, r));
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) /= length;
  }
  return x;
}
/// The first `count` rows divided by the largest norm, after subtracting the mean of each column (centre = 1)
/// or row (2).
inline Matrix over_largest(Matrix x, int64_t count, int centre) {
  for (int64_t r = 0; centre == 2 && r < count; ++r) {
    double mean = 0;
    for (int64_t c = 0; c < x.columns; ++c) mean += x.at(r, c) / static_cast<double>(x.columns);
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) -= mean;
  }
  for (int64_t c = 0; centre == 1 && c < x.columns; ++c) {
    double mean = 0;
    for (int64_t r = 0; r < count; ++r) mean += x.at(r, c) / static_cast<double>(count);
    for (int64_t r = 0; r < count; ++r) x.at(r, c) -= mean;
  }
  double largest = 0;
  for (int64_t r = 0; r < count; ++r) largest = std::max(largest, std::sqrt(dot(x, r, x, r)));
  for (double& value : x.values) value /= largest;
  std::fill(x.values.begin() + count * x.columns, x.values.end(), 0.0);  // padding
  return x;
}

/// f(scale q_i . k_j) with f(s) = sum over l of a_l s^l, divided by the row's sum. Gerami et al. 2024.
inline Matrix polynomial(const Matrix& q, const Matrix& k, const std::vector<double>& a, double scale,
                         const Allowed& allowed, double epsilon = 0) {
  Matrix out(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) {
      double power = 1;
      for (size_t l = 0; allowed(i, j) && l < a.size(); ++l) {
        out.at(i, j) += a[l] * power;
        power *= scale * dot(q, i, k, j);
      }
    }
    double total = epsilon;
    for (int64_t j = 0; j < k.rows; ++j) total += out.at(i, j);
    for (int64_t j = 0; j < k.rows; ++j) out.at(i, j) = total == 0 ? 0 : out.at(i, j) / total;
  }
  return out;
}
inline std::vector<double> taylor(int64_t p) {
  std::vector<double> a{1};
  for (int64_t l = 1; l <= p; ++l) a.push_back(a.back() / static_cast<double>(l));
  return a;
}

/// sum_c softmax(q_i)_c exp(k_jc) / sum over allowed j of exp(k_jc). Shen et al. 2018.
inline Matrix efficient(const Matrix& q, const Matrix& k, const Allowed& allowed) {
  Matrix out(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    double rho = 0;
    for (int64_t c = 0; c < q.columns; ++c) rho += std::exp(q.at(i, c));
    for (int64_t c = 0; c < q.columns; ++c) {
      double total = 0;
      for (int64_t j = 0; j < k.rows; ++j) total += allowed(i, j) ? std::exp(k.at(j, c)) : 0;
      for (int64_t j = 0; j < k.rows; ++j) {
        if (allowed(i, j)) out.at(i, j) += std::exp(q.at(i, c)) / rho * std::exp(k.at(j, c)) / total;
      }
    }
  }
  return out;
}

/// x d^(-1/4) W^T, [rows, m].
inline Matrix projected(const Matrix& x, const Matrix& w) {
  Matrix y = project(x, w);
  for (double& value : y.values) value *= std::pow(static_cast<double>(x.columns), -0.25);
  return y;
}
inline double half_square(const Matrix& x, int64_t row) {
  return dot(x, row, x, row) / (2 * std::sqrt(static_cast<double>(x.columns)));
}

/// exp(W x' - |x'|^2 / 2 - maximum exponent) + epsilon; for keys the maximum is over those the query sees.
/// Choromanski et al. 2020; both signs of W if `both`.
inline Matrix favor(const Matrix& q, const Matrix& k, const Matrix& w, bool both, double epsilon,
                    const Allowed& allowed) {
  const auto exponents = [&](const Matrix& x) {
    const Matrix along = projected(x, w);
    Matrix out(x.rows, both ? 2 * w.rows : w.rows);
    for (int64_t r = 0; r < out.rows; ++r) {
      for (int64_t c = 0; c < out.columns; ++c)
        out.at(r, c) = (c < w.rows ? along.at(r, c) : -along.at(r, c - w.rows)) - half_square(x, r);
    }
    return out;
  };
  const Matrix a = exponents(q), b = exponents(k);
  Matrix out(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    double top = -HUGE_VAL, largest = -HUGE_VAL;
    for (int64_t c = 0; c < a.columns; ++c) top = std::max(top, a.at(i, c));
    for (int64_t j = 0; j < k.rows; ++j) {
      for (int64_t c = 0; allowed(i, j) && c < b.columns; ++c) largest = std::max(largest, b.at(j, c));
    }
    for (int64_t j = 0; j < k.rows; ++j) {
      for (int64_t c = 0; allowed(i, j) && c < a.columns; ++c)
        out.at(i, j) += (std::exp(a.at(i, c) - top) + epsilon) * (std::exp(b.at(j, c) - largest) + epsilon);
    }
  }
  return normalised(out);
}

/// exp(|k'|^2 / 2) sum_r cos(w_r . (q' - k')), without the query's own factor. Peng et al. 2021.
inline Matrix fourier(const Matrix& q, const Matrix& k, const Matrix& w, const Allowed& allowed) {
  const Matrix a = projected(q, w), b = projected(k, w);
  Matrix out(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    double total = 0;
    for (int64_t j = 0; j < k.rows; ++j) {
      for (int64_t r = 0; allowed(i, j) && r < w.rows; ++r)
        out.at(i, j) += std::exp(half_square(k, j)) * std::cos(a.at(i, r) - b.at(j, r));
      total += out.at(i, j);
    }
    for (int64_t j = 0; j < k.rows; ++j) out.at(i, j) = total == 0 ? 0 : out.at(i, j) / total;
  }
  return out;
}

/// The product of (relu(W x') + epsilon) of q and k; or of [relu(Wx), relu(-Wx)] / sqrt(R).
inline Matrix relu_features(const Matrix& q, const Matrix& k, const Matrix& w, bool both, double epsilon,
                            const Allowed& allowed) {
  const Matrix a = both ? project(q, w) : projected(q, w), b = both ? project(k, w) : projected(k, w);
  const auto positive = [](double x) { return x > 0 ? x : 0; };
  Matrix out(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) {
      for (int64_t r = 0; allowed(i, j) && r < w.rows; ++r) {
        const double x = a.at(i, r), y = b.at(j, r);
        out.at(i, j) +=
            both ? (positive(x) * positive(y) + positive(-x) * positive(-y)) / static_cast<double>(2 * w.rows)
                 : (positive(x) + epsilon) * (positive(y) + epsilon);
      }
    }
  }
  return normalised(out, both ? epsilon : 0);
}

/// relu(q_i) . relu(k_j) cos(pi (i - j) / (2 length)). Qin et al. 2022.
inline Matrix cosformer(const Matrix& q, const Matrix& k, int64_t length, const Allowed& allowed,
                        double epsilon) {
  Matrix out(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) {
      for (int64_t c = 0; allowed(i, j) && c < q.columns; ++c)
        out.at(i, j) += std::max(q.at(i, c), 0.0) * std::max(k.at(j, c), 0.0);
      out.at(i, j) *= std::cos(std::acos(0.0) * static_cast<double>(i - j) / static_cast<double>(length));
    }
  }
  return normalised(out, epsilon);
}

}  // namespace heed::reference
