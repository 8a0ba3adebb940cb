// The effective rank: singular values by Jacobi rotations of the smaller Gram matrix, in f64.
#include "heed/attention/inspect/corpus_head_measures.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/core/error.h"

namespace heed {
namespace {

/// Rotates rows and columns p and q of a symmetric matrix [n, n] so that element (p, q) becomes 0: the Jacobi
/// rotation with tan(angle) = t and cot(2 angle) = theta.
void rotate(std::vector<double>& a, int64_t n, int64_t p, int64_t q) {
  const auto at = [&](int64_t i, int64_t j) -> double& { return a[static_cast<size_t>(i * n + j)]; };
  const double off = at(p, q);
  if (off == 0) return;
  const double theta = (at(q, q) - at(p, p)) / (2 * off);
  const double t = (theta >= 0 ? 1.0 : -1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1), s = t * c;
  for (int64_t k = 0; k < n; ++k) {
    const double x = at(k, p), y = at(k, q);
    at(k, p) = c * x - s * y;
    at(k, q) = s * x + c * y;
  }
  for (int64_t k = 0; k < n; ++k) {
    const double x = at(p, k), y = at(q, k);
    at(p, k) = c * x - s * y;
    at(q, k) = s * x + c * y;
  }
}

/// Leaves the eigenvalues of a symmetric matrix on its diagonal.
void diagonalise(std::vector<double>& a, int64_t n) {
  constexpr int max_sweeps = 30;
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    double off = 0, on = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double value = a[static_cast<size_t>(i * n + j)];
        (i == j ? on : off) += value * value;
      }
    if (off <= 1e-24 * on) return;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) rotate(a, n, p, q);
  }
}

}  // namespace

double effective_rank(std::span<const float> matrix, int64_t rows, int64_t columns) {
  if (rows < 1 || columns < 1 || static_cast<int64_t>(matrix.size()) != rows * columns)
    fail("effective_rank: ", matrix.size(), " numbers are no matrix of ", rows, " x ", columns, ".");
  const bool wide = rows <= columns;
  const int64_t n = std::min(rows, columns), length = std::max(rows, columns);
  const auto value = [&](int64_t line, int64_t k) {
    return static_cast<double>(matrix[static_cast<size_t>(wide ? line * columns + k : k * columns + line)]);
  };
  std::vector<double> gram(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; j < n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < length; ++k) sum += value(i, k) * value(j, k);
      gram[static_cast<size_t>(i * n + j)] = gram[static_cast<size_t>(j * n + i)] = sum;
    }
  diagonalise(gram, n);
  std::vector<double> singular;
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    singular.push_back(std::sqrt(std::max(0.0, gram[static_cast<size_t>(i * (n + 1))])));
    total += singular.back();
  }
  if (!(total > 0)) return 0;
  double entropy = 0;
  for (const double one : singular)
    if (one > 0) entropy -= one / total * std::log(one / total);
  return std::exp(entropy);
}

}  // namespace heed
