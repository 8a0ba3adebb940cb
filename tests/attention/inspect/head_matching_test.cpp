// Matching heads: the assignment against all permutations, and heads that were given other places.
#include "heed/attention/inspect/head_matching.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

double cost_of(const std::vector<double>& costs, int64_t columns, const std::vector<int64_t>& assignment) {
  double sum = 0;
  for (size_t row = 0; row < assignment.size(); ++row) {
    if (assignment[row] >= 0)
      sum += costs[row * static_cast<size_t>(columns) + static_cast<size_t>(assignment[row])];
  }
  return sum;
}

/// The least cost by trying all ways; rows <= columns.
double least_cost(const std::vector<double>& costs, int64_t rows, int64_t columns) {
  std::vector<int64_t> order(static_cast<size_t>(columns));
  std::iota(order.begin(), order.end(), 0);
  double least = std::numeric_limits<double>::infinity();
  do {
    least = std::min(least, cost_of(costs, columns, {order.begin(), order.begin() + rows}));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

/// Head h looks h + shift places back.
MapView looking_back(int64_t heads, const std::vector<int64_t>& shifts, int64_t layer = 0) {
  MapView map{.name = "encoder.attention",
              .kind = "encoder self",
              .layer = layer,
              .heads = heads,
              .queries = 6,
              .keys = 6};
  map.query_tokens = map.key_tokens = {"a", "b", "c", "d", "e", "f"};
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t query = 0; query < 6; ++query) {
      for (int64_t key = 0; key < 6; ++key)
        map.weights.push_back(key == (query + shifts[static_cast<size_t>(head)]) % 6 ? 0.9F : 0.02F);
    }
  }
  return map;
}

}  // namespace

TEST_CASE("best assignment: as cheap as the best of all ways, each column once") {
  uint64_t state = 7;
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 3}, {4, 4}, {6, 6}, {2, 5}, {3, 6}}) {
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<double> costs;
      for (int64_t i = 0; i < rows * columns; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's generator
        costs.push_back(static_cast<double>((state >> 33) % 12) - 4);     // ties and below zero
      }
      const std::vector<int64_t> got = best_assignment(costs, rows, columns);
      std::vector<int64_t> sorted = got;
      std::sort(sorted.begin(), sorted.end());
      CHECK(sorted.front() >= 0);
      CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
      CHECK(cost_of(costs, columns, got) == Approx(least_cost(costs, rows, columns)));
    }
  }
}

TEST_CASE("best assignment: rows beyond the columns go without") {
  const std::vector<double> costs{5, 1, 1, 9, 0, 9};  // 3 rows, 2 columns
  CHECK(best_assignment(costs, 3, 2) == std::vector<int64_t>{1, -1, 0});
  CHECK(best_assignment({}, 2, 0) == std::vector<int64_t>{-1, -1});
  CHECK_THROWS_AS(best_assignment({1, 2}, 1, 1), Error);
  CHECK_THROWS_AS(best_assignment({std::nan("")}, 1, 1), Error);
}

TEST_CASE("head distance: 0 for the same map, log 2 without a common key") {
  MapView one = looking_back(1, {1}), other = looking_back(1, {2});
  CHECK(head_distance(one, 0, one, 0) == 0);
  for (MapView* map : {&one, &other}) {
    for (float& weight : map->weights) weight = weight > 0.5F ? 1.0F : 0.0F;
  }
  CHECK(head_distance(one, 0, other, 0) == Approx(std::log(2.0)));
}

TEST_CASE("matching heads: finds heads that were given other places, across layers too") {
  const std::vector<MapView> one{looking_back(2, {0, 1}), looking_back(2, {2, 3}, 1)};
  const std::vector<MapView> other{looking_back(2, {3, 0}), looking_back(2, {1, 2}, 1)};
  const std::vector<HeadMatch> matches = match_heads(one, other);
  REQUIRE(matches.size() == 4);
  const std::vector<std::pair<size_t, int64_t>> expected{{0, 1}, {1, 0}, {1, 1}, {0, 0}};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(matches[i].other.map == expected[i].first);
    CHECK(matches[i].other.head == expected[i].second);
    CHECK(matches[i].distance == Approx(0).margin(1e-7));
  }
}

TEST_CASE(
    "matching heads: a model with fewer heads leaves some alone, other tokens are refused with the reason") {
  const std::vector<MapView> one{looking_back(3, {0, 1, 2})};
  const auto matches = match_heads(one, {looking_back(1, {1})});
  REQUIRE(matches.size() == 3);
  CHECK(matches[0].distance < 0);
  CHECK(matches[1].distance == Approx(0).margin(1e-7));
  CHECK(matches[2].distance < 0);

  std::vector<MapView> others{looking_back(3, {0, 1, 2})};
  CHECK(why_incomparable(one, others).empty());
  others[0].key_tokens[2] = "x";
  CHECK_THAT(why_incomparable(one, others), containing("keys number 2 is 'c' for one and 'x'"));
  CHECK_THROWS_AS(match_heads(one, others), Error);
  others[0].kind = "cross";
  CHECK_THAT(why_incomparable(one, others), containing("no kind of attention in common"));
}
