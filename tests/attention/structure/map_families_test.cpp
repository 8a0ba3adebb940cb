// Nearest structured maps: against members of the families, against trying all places, and in the limit.
#include "heed/attention/structure/map_families.h"

#include <cmath>

#include "heed/attention/structure/random_search.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// Positive rows that sum to 1, different in every entry.
SquareMatrix random_map(int64_t size, uint64_t seed) {
  Rng rng(seed);
  SquareMatrix out = SquareMatrix::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < size; ++j) sum += out.at(i, j) = std::exp(3 * rng.uniform());
    for (int64_t j = 0; j < size; ++j) out.at(i, j) /= sum;
  }
  return out;
}

/// The distance with bars at these starts and `errors` errors a row of at most eps, by the definition.
double distance_of_bars(const SquareMatrix& map, const std::vector<int64_t>& starts, int64_t height,
                        double eps, int64_t errors) {
  double total = 0;
  for (int64_t i = 0; i < map.size; ++i) {
    int64_t column = i;
    for (const int64_t a : starts) column = i >= a && i < a + height ? a : column;
    std::vector<double> rest;
    for (int64_t j = 0; j < map.size; ++j) {
      if (j != column) rest.push_back(std::abs(map.at(i, j)));
    }
    std::sort(rest.rbegin(), rest.rend());
    for (size_t k = 0; k < rest.size(); ++k)
      total += rest[k] - (static_cast<int64_t>(k) < errors ? std::min(rest[k], eps) : 0);
  }
  return total;
}

/// The least of these over all starts that are at least `height` apart.
double least_of_bars(const SquareMatrix& map, int64_t num_pos, int64_t height, double eps, int64_t errors,
                     std::vector<int64_t> starts = {}) {
  if (static_cast<int64_t>(starts.size()) == num_pos)
    return distance_of_bars(map, starts, height, eps, errors);
  double best = INFINITY;
  for (int64_t a = starts.empty() ? 0 : starts.back() + height; a + height <= map.size; ++a) {
    std::vector<int64_t> more = starts;
    more.push_back(a);
    best = std::min(best, least_of_bars(map, num_pos, height, eps, errors, more));
  }
  return best;
}

}  // namespace

TEST_CASE("families: a member of a family is at distance 0, and no other is nearer than itself") {
  MapGenerator draw(7, 0);
  // Without noise, whatever the generators draw is a member.
  int64_t usable = 0;
  for (int turn = 0; turn < 20; ++turn) {
    const SquareMatrix diagonal = draw.diagonal(12, 0), band = draw.band(12, 2, 0);
    CHECK(nearest_map(diagonal, {.family = MapFamily::diagonal}).distance == 0);
    if (std::isnan(entrywise_distance(band, band))) continue;  // a row of zeros
    CHECK(nearest_map(band, {.family = MapFamily::band, .width = 2}).distance == 0);
    CHECK(nearest_map(band, {.family = MapFamily::band, .width = 1}).distance > 0);
    ++usable;
  }
  CHECK(usable > 5);
  SquareMatrix bars = SquareMatrix::identity(9);
  for (const int64_t start : {1, 5}) {
    for (int64_t i = start; i < start + 3; ++i) std::swap(bars.at(i, i), bars.at(i, start));
  }
  const NearestMap found = nearest_map(bars, {.family = MapFamily::bars, .width = 3, .num_pos = 2});
  CHECK(found.distance == 0);
  CHECK(found.starts == std::vector<int64_t>{1, 5});
  CHECK(nearest_map(bars, {.family = MapFamily::bars, .width = 3, .num_pos = 1}).distance == 2);
}

TEST_CASE("families: the starts of bars are the best of all, with and without errors") {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const SquareMatrix map = random_map(11, seed);
    for (const auto& [num_pos, height] :
         {std::pair<int64_t, int64_t>{1, 3}, {2, 3}, {3, 3}, {2, 5}, {4, 1}}) {
      CAPTURE(seed, num_pos, height);
      for (const int64_t errors : {0, 2}) {
        const double eps = 0.1;
        const NearestMap found = nearest_map(
            map,
            {.family = MapFamily::bars, .width = height, .num_pos = num_pos, .eps = eps, .errors = errors});
        CHECK(found.distance == Approx(least_of_bars(map, num_pos, height, eps, errors)));
        CHECK(found.distance == Approx(distance_of_bars(map, found.starts, height, eps, errors)));
        REQUIRE(found.starts.size() == static_cast<size_t>(num_pos));
        for (size_t k = 1; k < found.starts.size(); ++k)
          CHECK(found.starts[k] - found.starts[k - 1] >= height);
        CHECK(found.starts.back() + height <= map.size);
      }
    }
  }
}

TEST_CASE("families: a band keeps the band, a thinned one its largest, and errors take the largest outside") {
  const SquareMatrix map = random_map(10, 5);
  const NearestMap band = nearest_map(map, {.family = MapFamily::band, .width = 2});
  double outside = 0;
  for (int64_t i = 0; i < 10; ++i) {
    for (int64_t j = 0; j < 10; ++j) {
      const bool in = std::abs(i - j) <= 2;
      CHECK(band.matrix.at(i, j) == (in ? map.at(i, j) : 0));
      outside += in ? 0 : map.at(i, j);
    }
  }
  CHECK(band.distance == Approx(outside));

  const NearestMap thinned = nearest_map(map, {.family = MapFamily::band, .width = 2, .dropout = 0.4});
  for (int64_t i = 0; i < 10; ++i) {
    std::vector<double> kept, dropped;
    for (int64_t j = std::max<int64_t>(i - 2, 0); j <= std::min<int64_t>(i + 2, 9); ++j)
      (thinned.matrix.at(i, j) != 0 ? kept : dropped).push_back(map.at(i, j));
    CHECK(kept.size() ==
          static_cast<size_t>(std::ceil(0.6 * static_cast<double>(kept.size() + dropped.size()))));
    CHECK(*std::min_element(kept.begin(), kept.end()) >= *std::max_element(dropped.begin(), dropped.end()));
  }

  const NearestMap with_errors =
      nearest_map(map, {.family = MapFamily::band, .width = 2, .eps = 0.05, .errors = 1});
  for (int64_t i = 0; i < 10; ++i) {
    double largest = 0, error = 0;
    for (int64_t j = 0; j < 10; ++j) {
      if (std::abs(i - j) <= 2) continue;
      largest = std::max(largest, map.at(i, j));
      error += with_errors.matrix.at(i, j);
    }
    CHECK(error == Approx(std::min(largest, 0.05)));
  }
  // Errors of any size and number fit every map.
  CHECK(nearest_map(map, {.family = MapFamily::diagonal, .eps = 1, .errors = 9}).distance == 0);
}

TEST_CASE("families: wider bands, more and larger errors are never farther") {
  const SquareMatrix map = random_map(14, 6);
  const std::vector<double> sweep = band_distances(map, 32);
  REQUIRE(sweep.size() == 33);
  for (int64_t w = 0; w < 33; ++w) {
    const auto at = static_cast<size_t>(w);
    CHECK(sweep[at] ==
          Approx(nearest_map(map, {.family = MapFamily::band, .width = w}).distance).margin(1e-12));
    if (w > 0) CHECK(sweep[at] <= sweep[at - 1]);
  }
  CHECK(sweep[12] > 0);
  CHECK(sweep[13] == 0);
  const auto with = [&](double eps, int64_t errors) {
    return nearest_map(map, {.family = MapFamily::band, .width = 1, .eps = eps, .errors = errors}).distance;
  };
  CHECK(with(0.02, 1) < with(0, 0));
  CHECK(with(0.04, 1) < with(0.02, 1));
  CHECK(with(0.04, 2) < with(0.04, 1));
}

TEST_CASE("families: negative weights count by their size") {
  SquareMatrix map = SquareMatrix::zeros(3);
  map.at(0, 0) = -2;
  map.at(0, 2) = -1;
  const NearestMap found = nearest_map(map, {.family = MapFamily::diagonal, .eps = 0.25, .errors = 1});
  CHECK(found.matrix.at(0, 0) == -2);
  CHECK(found.matrix.at(0, 2) == -0.25);
  CHECK(found.distance == 0.75);
}

TEST_CASE("families: what does not fit is refused with the numbers") {
  const SquareMatrix map = random_map(5, 1);
  CHECK_THROWS_WITH(nearest_map(map, {.family = MapFamily::bars, .width = 3, .num_pos = 2}),
                    containing("2 bars of height 3") && containing("5 rows"));
  CHECK_THROWS_WITH(nearest_map(map, {.family = MapFamily::bars, .width = 0}), containing("w = 0"));
  CHECK_THROWS_WITH(nearest_map(map, {.width = -1}), containing("w = -1"));
  CHECK_THROWS_WITH(nearest_map(map, {.dropout = 1}), containing("dropout = 1"));
  CHECK_THROWS_WITH(nearest_map(map, {.eps = -0.1}), containing("eps = -0.1"));
  CHECK_THROWS_WITH(nearest_map(map, {.errors = -1}), containing("errors = -1"));
  CHECK_THROWS_WITH(nearest_map({}, {}), containing("empty"));
}
