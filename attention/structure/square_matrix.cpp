// Distances of square matrices, and singular values by one-sided Jacobi rotations.
#include "heed/attention/structure/square_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/core/error.h"

namespace heed {
namespace {

SquareMatrix difference(const SquareMatrix& a, const SquareMatrix& b) {
  if (a.size != b.size)
    fail("structure: matrices of ", a.size, " and of ", b.size, " rows have no distance. Give equal sizes.");
  SquareMatrix out = a;
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] -= b.values[i];
  return out;
}

/// Rotates two columns p and q of a matrix in their plane so that they become orthogonal: by the angle whose
/// cotangent of the double is (q.q - p.p) / (2 p.q). Returns false if they already are.
bool orthogonalise(double* p, double* q, int64_t length) {
  double pp = 0, qq = 0, pq = 0;
  for (int64_t i = 0; i < length; ++i) {
    pp += p[i] * p[i];
    qq += q[i] * q[i];
    pq += p[i] * q[i];
  }
  if (std::abs(pq) <= 1e-15 * std::sqrt(pp * qq) || pq == 0) return false;
  const double cot_double_angle = (qq - pp) / (2 * pq);
  const double tangent =
      std::copysign(1.0, cot_double_angle) / (std::abs(cot_double_angle) + std::hypot(1.0, cot_double_angle));
  const double cosine = 1 / std::hypot(1.0, tangent), sine = cosine * tangent;
  for (int64_t i = 0; i < length; ++i) {
    const double old_p = p[i];
    p[i] = cosine * old_p - sine * q[i];
    q[i] = sine * old_p + cosine * q[i];
  }
  return true;
}

}  // namespace

SquareMatrix SquareMatrix::zeros(int64_t size) {
  return {size, std::vector<double>(static_cast<size_t>(size * size), 0.0)};
}

SquareMatrix SquareMatrix::identity(int64_t size) {
  SquareMatrix out = zeros(size);
  for (int64_t i = 0; i < size; ++i) out.at(i, i) = 1;
  return out;
}

SquareMatrix SquareMatrix::uniform(int64_t size) {
  SquareMatrix out = zeros(size);
  std::fill(out.values.begin(), out.values.end(), 1 / static_cast<double>(size));
  return out;
}

SquareMatrix SquareMatrix::of(int64_t size, std::span<const float> weights) {
  if (size < 1 || static_cast<int64_t>(weights.size()) != size * size)
    fail(Fault::data, "structure: ", weights.size(), " weights are no matrix of ", size,
         " rows and columns.");
  return {size, std::vector<double>(weights.begin(), weights.end())};
}

double entrywise_distance(const SquareMatrix& a, const SquareMatrix& b) {
  double sum = 0;
  for (const double value : difference(a, b).values) sum += std::abs(value);
  return sum;
}

double frobenius_distance(const SquareMatrix& a, const SquareMatrix& b) {
  double sum = 0;
  for (const double value : difference(a, b).values) sum += value * value;
  return std::sqrt(sum);
}

double spectral_distance(const SquareMatrix& a, const SquareMatrix& b) {
  return singular_values(difference(a, b)).front();
}

std::vector<double> singular_values(const SquareMatrix& a) {
  if (!std::all_of(a.values.begin(), a.values.end(), [](double x) { return std::isfinite(x); }))
    fail(Fault::data, "structure: a weight of the map is not finite, so it has no singular values.");
  constexpr int max_sweeps = 60;        // ten are usual
  std::vector<double> rows = a.values;  // columns of the transposed matrix, whose singular values are equal
  bool has_rotated = true;
  for (int sweep = 0; sweep < max_sweeps && has_rotated; ++sweep) {
    has_rotated = false;
    for (int64_t i = 0; i + 1 < a.size; ++i) {
      for (int64_t j = i + 1; j < a.size; ++j)
        has_rotated |= orthogonalise(rows.data() + i * a.size, rows.data() + j * a.size, a.size);
    }
  }
  std::vector<double> out;
  for (int64_t i = 0; i < a.size; ++i) {
    const double* row = rows.data() + i * a.size;
    out.push_back(std::sqrt(std::inner_product(row, row + a.size, row, 0.0)));
  }
  std::sort(out.rbegin(), out.rend());
  return out;
}

int64_t rank(const SquareMatrix& a) {
  const std::vector<double> values = singular_values(a);
  const double max_rounding = values.front() * static_cast<double>(a.size) *
                              static_cast<double>(std::numeric_limits<float>::epsilon());
  return std::count_if(values.begin(), values.end(), [&](double value) { return value > max_rounding; });
}

}  // namespace heed
