// SquareMatrix: an attention map of one head as numbers in double precision, its distances and its rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// A square matrix on the host, row-major. Row i holds the weights of query i.
struct SquareMatrix {
  int64_t size = 0;              ///< n: number of rows and of columns
  std::vector<double> values{};  ///< [n, n]

  /// Zeros, [size, size].
  static SquareMatrix zeros(int64_t size);
  /// The identity matrix.
  static SquareMatrix identity(int64_t size);
  /// 1 / size everywhere: attention with equal weights.
  static SquareMatrix uniform(int64_t size);
  /// A copy of the size * size weights of one head. Fault::data where there are not as many.
  static SquareMatrix of(int64_t size, std::span<const float> weights);

  /// The entry at [row, column], both from 0.
  double& at(int64_t row, int64_t column) { return values[static_cast<size_t>(row * size + column)]; }
  /// The entry at [row, column], both from 0.
  double at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * size + column)]; }
  /// The `size` entries of a row.
  std::span<const double> row(int64_t index) const {
    return std::span(values).subspan(static_cast<size_t>(index * size), static_cast<size_t>(size));
  }
};

/// sum_ij |a_ij - b_ij|: the distance of Conti 2024. All distances fail where the sizes differ.
double entrywise_distance(const SquareMatrix& a, const SquareMatrix& b);
/// sqrt(sum_ij (a_ij - b_ij)^2).
double frobenius_distance(const SquareMatrix& a, const SquareMatrix& b);
/// The largest singular value of a - b.
double spectral_distance(const SquareMatrix& a, const SquareMatrix& b);

/// All singular values, the largest first, by one-sided Jacobi rotations (Hestenes 1958): n^3 operations a
/// sweep, ten sweeps or so. Fault::data where a value is not finite.
std::vector<double> singular_values(const SquareMatrix& a);
/// The number of singular values above n * 1.2e-7 times the largest, the rounding of f32 maps.
int64_t rank(const SquareMatrix& a);

}  // namespace heed
