// Low-rank attention in plain loops: Linformer, Nystromformer and Skyformer.
#pragma once

#include <algorithm>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

inline Matrix product(const Matrix& a, const Matrix& b) { return apply(a, b); }

inline Matrix turned(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) y.at(c, r) = x.at(r, c);
  }
  return y;
}

/// Softmax of a b^T scale over the first `keys` rows of b.
inline Matrix softmax_map(const Matrix& a, const Matrix& b, double scale, int64_t keys) {
  return normalised(softmax(scale)(a, b, [keys](int64_t, int64_t j) { return j < keys; }));
}

/// softmax(q (E k)^T / sqrt(d)) F over the first `keys` positions; E and F [k, length]. Wang et al. 2020.
inline Matrix linformer(const Matrix& q, const Matrix& k, const Matrix& e, const Matrix& f, int64_t keys) {
  Matrix mixed(e.rows, k.columns), values(f.rows, k.rows);
  for (int64_t slot = 0; slot < e.rows; ++slot) {
    for (int64_t j = 0; j < keys; ++j) {
      values.at(slot, j) = f.at(slot, j);
      for (int64_t c = 0; c < k.columns; ++c) mixed.at(slot, c) += e.at(slot, j) * k.at(j, c);
    }
  }
  return product(softmax_map(q, mixed, 1 / std::sqrt(static_cast<double>(q.columns)), e.rows), values);
}

/// Means of `runs` segments of the first n rows; with `segment`, of so many rows each, zeros from row n on.
inline Matrix averaged(const Matrix& x, int64_t n, int64_t runs, int64_t segment = 0) {
  Matrix y(runs, x.columns);
  for (int64_t s = 0; s < runs; ++s) {
    const int64_t first = segment > 0 ? s * segment : s * n / runs;
    const int64_t last = segment > 0 ? first + segment : (s + 1) * n / runs;
    for (int64_t t = first; t < std::min(last, n); ++t) {
      for (int64_t c = 0; c < x.columns; ++c) y.at(s, c) += x.at(t, c) / static_cast<double>(last - first);
    }
  }
  return y;
}

inline double largest_column_sum(const Matrix& a) {
  double largest = 0;
  for (int64_t c = 0; c < a.columns; ++c) {
    double total = 0;
    for (int64_t r = 0; r < a.rows; ++r) total += a.at(r, c);
    largest = std::max(largest, total);
  }
  return largest;
}

/// The pseudo-inverse of a map by `iterations` steps from its transpose divided by `largest`. Xiong et al.
/// 2021, equation 15.
inline Matrix pseudo_inverse(const Matrix& a, int64_t iterations, double largest) {
  const auto minus = [](double diagonal, const Matrix& x) {
    Matrix y(x.rows, x.columns);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < x.columns; ++c) y.at(r, c) = (r == c ? diagonal : 0) - x.at(r, c);
    }
    return y;
  };
  Matrix z = turned(a);
  for (double& value : z.values) value /= largest;
  for (int64_t i = 0; i < iterations; ++i) {
    const Matrix az = product(a, z);
    z = product(z, minus(13, product(az, minus(15, product(az, minus(7, az))))));
    for (double& value : z.values) value /= 4;
  }
  return z;
}

/// Nystromformer's map between landmarks: shares of the real rows, or segments of a fixed size.
inline Matrix nystrom_corner(const Matrix& q, const Matrix& k, int64_t landmarks, int64_t queries,
                             int64_t keys, int64_t segment = 0) {
  const int64_t m = segment > 0 ? landmarks : std::min({landmarks, q.rows, keys});
  return softmax_map(averaged(q, queries, m, segment), averaged(k, keys, m, segment),
                     1 / std::sqrt(static_cast<double>(q.columns)), m);
}

/// The map of Nystromformer with `queries` and `keys` real rows, plus `conv` (of odd width, or empty). The
/// inverse starts from the transpose divided by `largest`, or if 0 by the corner's largest column sum.
inline Matrix nystromformer(const Matrix& q, const Matrix& k, int64_t landmarks, int64_t iterations,
                            int64_t queries, int64_t keys, const std::vector<double>& conv = {},
                            double largest = 0, int64_t segment = 0) {
  const int64_t m = segment > 0 ? landmarks : std::min({landmarks, q.rows, keys});
  Matrix map(q.rows, k.rows);
  if (m > 0) {
    const double scale = 1 / std::sqrt(static_cast<double>(q.columns));
    const Matrix of_queries = averaged(q, queries, m, segment), of_keys = averaged(k, keys, m, segment);
    const Matrix corner = nystrom_corner(q, k, landmarks, queries, keys, segment);
    const Matrix inverse =
        pseudo_inverse(corner, iterations, largest > 0 ? largest : largest_column_sum(corner));
    map =
        product(product(softmax_map(q, of_keys, scale, m), inverse), softmax_map(of_queries, k, scale, keys));
  }
  const auto half = static_cast<int64_t>(conv.size()) / 2;
  for (int64_t i = 0; i < q.rows && !conv.empty(); ++i) {
    for (int64_t j = std::max<int64_t>(0, i - half); j <= std::min(keys - 1, i + half); ++j)
      map.at(i, j) += conv[static_cast<size_t>(j - i + half)];
  }
  return map;
}

/// exp(-|a_i - b_j|^2 / (2 sqrt(d))).
inline Matrix gaussian(const Matrix& a, const Matrix& b) {
  Matrix y(a.rows, b.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.rows; ++j) {
      double square = 0;
      for (int64_t c = 0; c < a.columns; ++c) square += std::pow(a.at(i, c) - b.at(j, c), 2);
      y.at(i, j) = std::exp(-square / (2 * std::sqrt(static_cast<double>(a.columns))));
    }
  }
  return y;
}

/// The samples of n rows of x: as many of `draws`, from the first, as there are rows.
inline void sample(const Matrix& x, const std::vector<double>& draws, int64_t n, Matrix& into) {
  for (int64_t s = 0; s < std::min<int64_t>(static_cast<int64_t>(draws.size()), n); ++s) {
    const auto row = static_cast<int64_t>(draws[static_cast<size_t>(s)] * static_cast<double>(n));
    ++into.rows;
    for (int64_t c = 0; c < x.columns; ++c) into.values.push_back(x.at(row, c));
  }
}

/// What Skyformer inverts, divided by the roots of its row sums, and these roots. Chen et al. 2021,
/// section 4.
struct SkyformerCorner {
  Matrix samples, scaled;
  std::vector<double> roots;
};

/// `draws` are numbers below 1: half of them for `queries` rows of q, the rest for `keys` rows of k.
inline SkyformerCorner skyformer_corner(const Matrix& q, const Matrix& k, const std::vector<double>& draws,
                                        double gamma, int64_t queries, int64_t keys) {
  const auto middle = draws.begin() + static_cast<std::ptrdiff_t>(draws.size() / 2);
  Matrix samples(0, q.columns);
  sample(q, {draws.begin(), middle}, queries, samples);
  sample(k, {middle, draws.end()}, keys, samples);
  Matrix corner = gaussian(samples, samples);
  std::vector<double> roots(static_cast<size_t>(samples.rows));
  for (int64_t i = 0; i < samples.rows; ++i) {
    corner.at(i, i) += gamma;
    double total = 0;
    for (int64_t j = 0; j < samples.rows; ++j) total += corner.at(i, j);
    roots[static_cast<size_t>(i)] = std::sqrt(total);
  }
  for (int64_t i = 0; i < samples.rows; ++i) {
    for (int64_t j = 0; j < samples.rows; ++j)
      corner.at(i, j) /= roots[static_cast<size_t>(i)] * roots[static_cast<size_t>(j)];
  }
  return {std::move(samples), std::move(corner), std::move(roots)};
}

/// Skyformer's map with `keys` real keys. The inverse starts with `largest`, or if 0 with the corner's
/// largest column sum.
inline Matrix skyformer(const Matrix& q, const Matrix& k, const SkyformerCorner& corner, int64_t iterations,
                        int64_t keys, double largest = 0) {
  Matrix middle =
      pseudo_inverse(corner.scaled, iterations, largest > 0 ? largest : largest_column_sum(corner.scaled));
  for (int64_t i = 0; i < middle.rows; ++i) {
    for (int64_t j = 0; j < middle.columns; ++j)
      middle.at(i, j) /= corner.roots[static_cast<size_t>(i)] * corner.roots[static_cast<size_t>(j)];
  }
  Matrix map = product(product(gaussian(q, corner.samples), middle), gaussian(corner.samples, k));
  for (int64_t i = 0; i < map.rows; ++i) {
    for (int64_t j = keys; j < map.columns; ++j) map.at(i, j) = 0;
  }
  return map;
}

}  // namespace heed::reference
