// The effective rank: singular values by Jacobi rotations of the smaller Gram matrix, in f64.
#include "heed/attention/inspect/corpus_head_measures.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/core/error.h"

namespace heed {
namespace {

/// Rotates rows and columns p and q of a symmetric matrix [n, n] so that element (p, q) becomes 0: the Jacobi
/// rotation.
void rotate(std::vector<double>& matrix, int64_t n, int64_t p, int64_t q) {
  const auto at = [&](int64_t i, int64_t j) -> double& { return matrix[static_cast<size_t>(i * n + j)]; };
  const double off_diagonal = at(p, q);
  if (off_diagonal == 0) return;
  const double cot_double_angle = (at(q, q) - at(p, p)) / (2 * off_diagonal);
  const double tangent = (cot_double_angle >= 0 ? 1.0 : -1.0) /
                         (std::abs(cot_double_angle) + std::sqrt(cot_double_angle * cot_double_angle + 1));
  const double cosine = 1 / std::sqrt(tangent * tangent + 1), sine = tangent * cosine;
  const auto rotate_pair = [&](double& x, double& y) {
    const double old_x = x, old_y = y;
    x = cosine * old_x - sine * old_y;
    y = sine * old_x + cosine * old_y;
  };
  for (int64_t k = 0; k < n; ++k) rotate_pair(at(k, p), at(k, q));
  for (int64_t k = 0; k < n; ++k) rotate_pair(at(p, k), at(q, k));
}

/// Leaves the eigenvalues of a symmetric matrix on its diagonal.
void diagonalise(std::vector<double>& matrix, int64_t n) {
  constexpr int max_sweeps = 30;
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    double off_diagonal = 0, on_diagonal = 0;  // sums of squares
    for (int64_t i = 0; i < n * n; ++i) {
      const double value = matrix[static_cast<size_t>(i)];
      (i / n == i % n ? on_diagonal : off_diagonal) += value * value;
    }
    if (off_diagonal <= 1e-24 * on_diagonal) return;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) rotate(matrix, n, p, q);
  }
}

}  // namespace

double effective_rank(std::span<const float> matrix, int64_t rows, int64_t columns) {
  if (rows < 1 || columns < 1 || static_cast<int64_t>(matrix.size()) != rows * columns)
    fail("effective_rank: ", matrix.size(), " numbers are no matrix of ", rows, " x ", columns, ".");
  // The Gram matrix of the n vectors of `length` elements that are fewer: rows, or columns of a tall matrix.
  const bool is_tall = rows > columns;
  const int64_t n = std::min(rows, columns), length = std::max(rows, columns);
  const auto element = [&](int64_t vector, int64_t k) {
    const int64_t index = is_tall ? k * columns + vector : vector * columns + k;
    return static_cast<double>(matrix[static_cast<size_t>(index)]);
  };
  std::vector<double> gram(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; j < n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < length; ++k) sum += element(i, k) * element(j, k);
      gram[static_cast<size_t>(i * n + j)] = gram[static_cast<size_t>(j * n + i)] = sum;
    }
  diagonalise(gram, n);
  std::vector<double> singular_values;
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    singular_values.push_back(std::sqrt(std::max(0.0, gram[static_cast<size_t>(i * (n + 1))])));
    total += singular_values.back();
  }
  if (!(total > 0)) return 0;
  double entropy = 0;
  for (const double value : singular_values)
    if (value > 0) entropy -= value / total * std::log(value / total);
  return std::exp(entropy);
}

}  // namespace heed
