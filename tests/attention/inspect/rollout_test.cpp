// Rollout against plain loops, and where it is left out.
#include "heed/attention/inspect/rollout.h"

#include <cmath>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

MapView layer_map(int64_t layer, int64_t length, float seed, const char* kind = "encoder self") {
  MapView map;
  map.kind = kind;
  map.layer = layer;
  map.heads = 2;
  map.queries = map.keys = length;
  for (int64_t i = 0; i < 2 * length * length; ++i)
    map.weights.push_back(std::abs(std::sin(seed + static_cast<float>(i))));
  map.query_tokens.assign(static_cast<size_t>(length), "a");
  map.key_tokens = map.query_tokens;
  return map;
}

/// R_l = A_l R_(l-1) by loops in double, as the paper has it.
std::vector<double> rolled(const std::vector<MapView>& layers) {
  const int64_t n = layers[0].queries;
  std::vector<double> flow;
  for (const MapView& map : layers) {
    std::vector<double> mixed(static_cast<size_t>(n * n)), next(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n; ++i) {
      double total = 0;
      for (int64_t j = 0; j < n; ++j)
        total += mixed[static_cast<size_t>(i * n + j)] =
            0.5 * (static_cast<double>(map.at(0, i, j)) + map.at(1, i, j)) + (i == j ? 1 : 0);
      for (int64_t j = 0; j < n; ++j) mixed[static_cast<size_t>(i * n + j)] /= total;
    }
    if (flow.empty()) {
      flow = mixed;
      continue;
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < n; ++k)
        for (int64_t j = 0; j < n; ++j)
          next[static_cast<size_t>(i * n + j)] +=
              mixed[static_cast<size_t>(i * n + k)] * flow[static_cast<size_t>(k * n + j)];
    flow = next;
  }
  return flow;
}

}  // namespace

TEST_CASE(
    "rollout: the product of the layers' mean maps with the identity, whatever their order in the list") {
  const std::vector<MapView> layers{layer_map(0, 7, 0.3F), layer_map(1, 7, 1.7F), layer_map(2, 7, 4.1F)};
  std::vector<MapView> maps{layers[2], layer_map(0, 5, 2.0F, "decoder self"), layers[0], layers[1],
                            layer_map(0, 7, 9.0F, "cross")};
  add_rollout(maps);
  for (size_t at : {size_t{0}, size_t{2}, size_t{3}}) {
    const auto depth = static_cast<std::ptrdiff_t>(maps[at].layer) + 1;
    const std::vector<double> expected = rolled({layers.begin(), layers.begin() + depth});
    REQUIRE(maps[at].rollout.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(maps[at].rollout[i] == Approx(expected[i]).margin(1e-6));
  }
  CHECK(maps[1].rollout.size() == 25);
  CHECK(maps[4].rollout.empty());
}

TEST_CASE("rollout: a row without a sum passes its own token on") {
  MapView map = layer_map(0, 3, 0.5F);
  for (size_t j = 0; j < 3; ++j) map.weights[j] = map.weights[9 + j] = -1;
  map.weights[3] = NAN;
  std::vector<MapView> maps{map};
  add_rollout(maps);
  const std::vector<float> first(maps[0].rollout.begin(), maps[0].rollout.begin() + 6);
  CHECK(first == std::vector<float>{1, 0, 0, 0, 1, 0});
}

TEST_CASE("rollout: a stack with a gap, of several lengths or too long has none") {
  std::vector<MapView> gap{layer_map(0, 4, 1), layer_map(2, 4, 2)},
      uneven{layer_map(0, 4, 1), layer_map(1, 5, 2)}, twice{layer_map(0, 4, 1), layer_map(0, 4, 2)},
      tall{layer_map(0, 4, 1)};
  for (std::vector<MapView>* maps : {&gap, &uneven, &twice}) {
    add_rollout(*maps);
    for (const MapView& map : *maps) CHECK(map.rollout.empty());
  }
  add_rollout(tall, 3);
  CHECK(tall[0].rollout.empty());
  add_rollout(tall, 4);
  CHECK(tall[0].rollout.size() == 16);
}
