// The random search and its generators: what they draw, that seeds repeat, and that longer is never worse.
#include "heed/attention/structure/random_search.h"

#include <cmath>

#include "heed/attention/structure/head_structure.h"
#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

int64_t non_zero(const SquareMatrix& map, const std::function<bool(int64_t, int64_t)>& where) {
  int64_t count = 0;
  for (int64_t i = 0; i < map.size; ++i) {
    for (int64_t j = 0; j < map.size; ++j) count += map.at(i, j) != 0 && where(i, j) ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("random search: generators draw members of their families") {
  MapGenerator draw(11, 0);
  int64_t in_band = 0, of_band = 0;
  for (int turn = 0; turn < 50; ++turn) {
    const SquareMatrix diagonal = draw.diagonal(16, 0.5);
    const int64_t noise = non_zero(diagonal, [](int64_t i, int64_t j) { return i != j; });
    CHECK(noise <= 16);
    CHECK(noise >= 10);  // at most a few of 16 places lie on the diagonal
    for (int64_t i = 0; i < 16; ++i) {
      double sum = 0;
      for (const double value : diagonal.row(i)) sum += value;
      CHECK(sum == Approx(1));
    }
    const SquareMatrix band = draw.band(16, 3, 0);
    CHECK(non_zero(band, [](int64_t i, int64_t j) { return std::abs(i - j) > 3 && i >= 0; }) ==
          non_zero(band,
                   [&](int64_t i, int64_t j) { return std::isnan(band.at(i, j)) && std::abs(i - j) > 3; }));
    in_band += non_zero(band, [](int64_t i, int64_t j) { return std::abs(i - j) <= 3; });
    of_band += 16 * 7 - 12;
    // Without weight on diagonal and bars only the noise is left; with weight each row has an entry.
    const SquareMatrix bars = draw.bars(16, 2, 3, 1);
    int64_t moved = 0;
    for (int64_t i = 0; i < 16; ++i) moved += bars.at(i, i) < 0.4 ? 1 : 0;
    CHECK(moved >= 4);  // two rows of each bar lie off the diagonal
  }
  CHECK(static_cast<double>(in_band) / static_cast<double>(of_band) == Approx(0.6).margin(0.03));
}

TEST_CASE("random search: a seed repeats, another differs, and more candidates are never worse") {
  MapGenerator draw(5, 1);
  const SquareMatrix map = draw.band(12, 2, 0.3);
  const SearchOptions short_search{.width = 2, .num_pos = 2, .draws = 2, .grid = 3, .seed = 4};
  const SearchResult first = random_search(map, short_search);
  CHECK(first.candidates == 3 * 2 * 27);
  CHECK(first.distance == Approx(entrywise_distance(map, first.matrix)));
  CHECK(random_search(map, short_search).matrix.values == first.matrix.values);
  SearchOptions other = short_search;
  other.seed = 5;
  CHECK(random_search(map, other).distance != first.distance);
  other = short_search;
  other.stream = 1;
  CHECK(random_search(map, other).distance != first.distance);
  // No candidate without noise is nearer than the nearest member: of a band, that is the band itself.
  CHECK(first.distance > nearest_map(map, {.family = MapFamily::band, .width = 2}).distance);
  CHECK_THROWS_WITH(random_search(map, {.width = 7, .num_pos = 2}), containing("2 bars of height 7"));
  CHECK_THROWS_WITH(random_search(map, {.draws = 0}), containing("0 draws"));
}

TEST_CASE("head structure: a map beside its nearest members and trivial matrices") {
  const SquareMatrix map = SquareMatrix::uniform(8);
  const HeadStructure found = head_structure(map, {.width = 2, .num_pos = 2, .search_draws = 1});
  CHECK(found.size == 8);
  CHECK(found.mass == Approx(8));
  CHECK(found.rank == 1);
  CHECK(found.spectral == Approx(1));
  CHECK(found.min_row_sum == Approx(1));
  CHECK(found.of("uniform").entrywise == 0);
  CHECK(found.of("zero").entrywise == Approx(8));
  CHECK(found.of("diagonal").entrywise == Approx(7));
  CHECK(found.of("bars").entrywise == Approx(7));
  CHECK(found.of("identity").entrywise == Approx(14));
  CHECK(found.of("band").mean_error == Approx(found.sweep[2] / 64));
  CHECK(found.nearest() == Approx(found.sweep[2]));
  CHECK(found.of("search").entrywise > found.nearest());
  CHECK(found.sweep.size() == 8);
  CHECK_THROWS_WITH(found.of("bard"), containing("'bard'"));

  const HeadStructure small = head_structure(SquareMatrix::uniform(4), {.width = 3, .num_pos = 2});
  CHECK(small.matrices.size() == 5);  // no bars: they do not fit
  const HeadStructure mean = mean_structure({found, small});
  CHECK(mean.size == 6);
  CHECK(mean.mass == Approx(6));
  CHECK(mean.sweep.size() == 4);
  CHECK_THROWS_WITH(mean.of("bars"), containing("'bars'"));
  CHECK(mean.of("zero").entrywise == Approx(6));
  CHECK_THROWS_WITH(head_structure(SquareMatrix::zeros(max_structured_size + 1), {}), containing("513 rows"));
}
