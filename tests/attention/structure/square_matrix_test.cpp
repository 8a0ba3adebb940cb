// Distances, singular values and ranks of matrices whose values are known.
#include "heed/attention/structure/square_matrix.h"

#include <cmath>
#include <limits>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("square matrix: distances of known matrices") {
  const SquareMatrix zero = SquareMatrix::zeros(4), one = SquareMatrix::identity(4),
                     mean = SquareMatrix::uniform(4);
  CHECK(entrywise_distance(one, zero) == 4);
  CHECK(frobenius_distance(one, zero) == 2);
  CHECK(spectral_distance(one, zero) == Approx(1));
  CHECK(entrywise_distance(one, mean) == 4 * 0.75 + 12 * 0.25);
  CHECK(spectral_distance(mean, zero) == Approx(1));
  CHECK(spectral_distance(one, mean) == Approx(1));  // a projection
  CHECK_THROWS_WITH(entrywise_distance(one, SquareMatrix::zeros(3)), containing("4") && containing("3"));
}

TEST_CASE("square matrix: singular values of diagonal, rotated and singular matrices") {
  SquareMatrix diagonal = SquareMatrix::zeros(3);
  diagonal.at(0, 2) = 3;
  diagonal.at(1, 0) = -5;
  const std::vector<double> values = singular_values(diagonal);
  REQUIRE(values.size() == 3);
  CHECK(values[0] == Approx(5));
  CHECK(values[1] == Approx(3));
  CHECK(values[2] == 0);
  CHECK(rank(diagonal) == 2);
  CHECK(rank(SquareMatrix::uniform(7)) == 1);
  CHECK(rank(SquareMatrix::identity(7)) == 7);
  CHECK(rank(SquareMatrix::zeros(7)) == 0);

  // Their squares sum to the squared Frobenius norm, and the product of two factors has the rank of the
  // thinner.
  Rng rng(3);
  constexpr int64_t size = 20, inner = 6;
  std::vector<double> left, right;
  for (int64_t i = 0; i < size * inner; ++i) {
    left.push_back(rng.uniform() - 0.5);
    right.push_back(rng.uniform() - 0.5);
  }
  SquareMatrix product = SquareMatrix::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      for (int64_t k = 0; k < inner; ++k)
        product.at(i, j) +=
            left[static_cast<size_t>(i * inner + k)] * right[static_cast<size_t>(j * inner + k)];
    }
  }
  double squares = 0;
  for (const double value : singular_values(product)) squares += value * value;
  CHECK(std::sqrt(squares) == Approx(frobenius_distance(product, SquareMatrix::zeros(size))));
  CHECK(rank(product) == inner);
}

TEST_CASE("square matrix: wrong sizes and numbers are refused") {
  const std::vector<float> weights(6, 1.0F);
  CHECK_THROWS_WITH(SquareMatrix::of(3, weights), containing("6 weights"));
  SquareMatrix bad = SquareMatrix::identity(2);
  bad.at(0, 1) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(singular_values(bad), containing("not finite"));
}
