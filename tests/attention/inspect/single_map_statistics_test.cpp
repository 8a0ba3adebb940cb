// Statistics of a head, on maps with known results.
#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/attention/inspect/head_matching.h"

#include <cmath>

#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// A map of one head for each function weight(query, key).
template <class... Weights>
MapView made(int64_t queries, int64_t keys, const Weights&... weights) {
  MapView map;
  map.name = "encoder.0.attention";
  map.kind = "encoder self";
  map.heads = sizeof...(weights);
  map.queries = queries;
  map.keys = keys;
  const auto fill = [&](const auto& weight) {
    for (int64_t query = 0; query < queries; ++query)
      for (int64_t key = 0; key < keys; ++key) map.weights.push_back(static_cast<float>(weight(query, key)));
  };
  (fill(weights), ...);
  for (int64_t i = 0; i < queries; ++i) map.query_tokens.push_back("q" + std::to_string(i));
  for (int64_t i = 0; i < keys; ++i) map.key_tokens.push_back("k" + std::to_string(i));
  return map;
}

const auto uniform = [](int64_t, int64_t) { return 0.25; };
const auto identity = [](int64_t query, int64_t key) { return query == key ? 1.0 : 0.0; };
const auto before = [](int64_t query, int64_t key) {
  return key == std::max<int64_t>(query - 1, 0) ? 1.0 : 0.0;
};
const auto first = [](int64_t, int64_t key) { return key == 0 ? 1.0 : 0.0; };

}  // namespace

TEST_CASE("map statistics: uniform attention has the entropy of its reference and carries no information") {
  const auto one = head_statistics(made(4, 4, uniform))[0];
  CHECK(one.entropy == Approx(std::log(4)));
  CHECK(one.uniform_entropy == Approx(std::log(4)));
  CHECK(one.information == Approx(0).margin(1e-9));
  CHECK(one.confidence == Approx(0.25));
  CHECK(one.diagonal == Approx(0.25));
  CHECK(one.previous == Approx(0.25));
  CHECK(one.next == Approx(0.25));
  // |i - j| over a 4 x 4 square: 2 * (3 * 1 + 2 * 2 + 1 * 3) = 20, times 1/4, over 4 rows.
  CHECK(one.distance == Approx(1.25));
  CHECK(one.offset == Approx(0).margin(1e-9));
  CHECK(one.band[0] == Approx(0.25));
  CHECK(one.band[1] == Approx(10.0 / 16));
  CHECK(one.band[2] == Approx(14.0 / 16));
  CHECK(one.band[3] == Approx(1.0));
}

TEST_CASE("map statistics: positional heads show where they look") {
  const auto heads = head_statistics(made(4, 4, identity, before, first));
  CHECK(heads[0].entropy == Approx(0).margin(1e-9));
  CHECK(heads[0].information == Approx(std::log(4)));
  CHECK(heads[0].diagonal == Approx(1));
  CHECK(heads[0].confidence == Approx(1));
  CHECK(heads[1].previous == Approx(1));
  CHECK(heads[1].diagonal == Approx(0.25));
  CHECK(heads[1].distance == Approx(0.75));
  CHECK(heads[1].offset == Approx(-0.75));
  CHECK(heads[2].favourite == 0);
  CHECK(heads[2].favourite_mass == Approx(1));
  CHECK(heads[2].information == Approx(0).margin(1e-9));
}

TEST_CASE("map statistics: masses average only the rows that have the key") {
  const auto wide =
      head_statistics(made(2, 4, [](int64_t query, int64_t key) { return key == query + 1 ? 1.0 : 0.0; }));
  CHECK(wide[0].next == Approx(1));
  CHECK(wide[0].previous == Approx(0).margin(1e-9));
  const auto tall =
      head_statistics(made(4, 2, [](int64_t query, int64_t key) { return key == query - 1 ? 1.0 : 0.0; }));
  CHECK(tall[0].previous == Approx(1));  // rows 1 and 2 have a previous key, rows 0 and 3 have none
  const auto single = head_statistics(made(1, 1, identity));
  CHECK(single[0].next == 0);
  CHECK(single[0].uniform_entropy == 0);
}

TEST_CASE("map statistics: a causal map is measured against uniform attention over what it may see") {
  const auto share = [](int64_t query, int64_t key) {
    return key <= query ? 1.0 / static_cast<double>(query + 1) : 0.0;
  };
  const MapView map = made(3, 3, share);
  CHECK(causal(map));
  const auto one = head_statistics(map)[0];
  CHECK(one.uniform_entropy == Approx((std::log(2) + std::log(3)) / 3));
  CHECK(one.entropy == Approx(one.uniform_entropy));
  CHECK_FALSE(causal(made(3, 3, uniform)));
  CHECK_FALSE(causal(made(3, 4, first)));
}

TEST_CASE("map statistics: confidence leaves the end of the sentence out") {
  MapView map = made(2, 3, [](int64_t, int64_t key) { return key == 2 ? 0.8 : 0.1; });
  CHECK(head_statistics(map)[0].confidence == Approx(0.8));
  map.key_tokens[2] = "</s>";
  CHECK(head_statistics(map)[0].confidence == Approx(0.1));
}

TEST_CASE("map statistics: the sharpest head tells queries apart") {
  // Looking always at the first token has no entropy at all, yet it is not the answer.
  const MapView one = made(4, 4, uniform, first, before), other = made(4, 4, uniform, identity);
  CHECK(sharpest_head({one}).head == 2);
  const HeadChoice best = sharpest_head({one, other});
  CHECK(best.map == 1);
  CHECK(best.head == 1);
  MapView cross = made(4, 4, uniform, before);
  cross.kind = "cross";
  CHECK(first_head({other, cross}).map == 1);
  CHECK(first_head({other, cross}).head == 1);
  CHECK(first_head({one, other}).map == 1);
  CHECK_THROWS_AS(sharpest_head({}), Error);
}

TEST_CASE("map statistics: heads that agree have no distance, heads that disagree log 2") {
  const MapView map = made(4, 4, identity, identity, before);
  CHECK(head_distance(map, 0, map, 1) == Approx(0).margin(1e-9));
  CHECK(head_distance(map, 0, map, 2) == Approx(0.75 * std::log(2)));  // the first row agrees
  CHECK(head_distance(map, 2, map, 0) == head_distance(map, 0, map, 2));
}

TEST_CASE("map statistics: a map that does not fit together is refused with its numbers") {
  MapView map = made(2, 3, uniform);
  map.weights.pop_back();
  CHECK_THROWS_WITH(head_statistics(map), containing("5 weights") && containing("need 6"));
  map = made(2, 3, uniform);
  map.key_tokens.pop_back();
  CHECK_THROWS_WITH(head_statistics(map), containing("2 key tokens for 3 keys"));
  map = made(2, 3, uniform);
  map.query_tokens.push_back("more");
  CHECK_THROWS_WITH(check(map), containing("3 query tokens for 2 queries"));
  CHECK_THROWS_WITH(check(MapView{}), containing("empty"));
}

TEST_CASE("map statistics: weights that are not finite do not win and do not crash") {
  const auto broken = [](int64_t, int64_t) { return NAN; };
  const HeadChoice best = sharpest_head({made(3, 3, broken, before)});
  CHECK(best.head == 1);
}

TEST_CASE("map view: tiles keep the sum of rows and say which positions they cover") {
  const MapView small =
      pooled(made(5, 7, [](int64_t query, int64_t key) { return key == query ? 1.0 : 0.0; }), 3);
  CHECK(small.queries == 3);
  CHECK(small.keys == 3);
  CHECK(small.query_tokens == std::vector<std::string>{"0–1", "2–3", "4"});
  CHECK(small.key_tokens == std::vector<std::string>{"0–2", "3–5", "6"});
  CHECK(small.at(0, 0, 0) == Approx(1));
  CHECK(small.at(0, 1, 0) == Approx(0.5));
  CHECK(small.at(0, 1, 1) == Approx(0.5));
  CHECK(small.at(0, 2, 1) == Approx(1));
  const MapView same = pooled(made(3, 3, identity), 3);
  CHECK(same.query_tokens[0] == "q0");
  CHECK_THROWS_AS(pooled(same, 0), Error);
}
