// Products of the layers' mean maps.
#include "heed/attention/inspect/rollout.h"

#include <algorithm>
#include <map>

#include "heed/autograd/ops.h"
#include "heed/autograd/tape.h"

namespace heed {
namespace {

/// The mean of the heads plus the identity, with rows of sum 1: A_l [1, n, n].
Tensor mean_map_with_identity(const MapView& map) {
  const int64_t n = map.queries;
  std::vector<float> weights(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> row(static_cast<size_t>(n));
    for (int64_t head = 0; head < map.heads; ++head)
      for (int64_t j = 0; j < n; ++j) row[static_cast<size_t>(j)] += map.at(head, i, j);
    double total = 1;
    for (double& weight : row) total += weight /= static_cast<double>(map.heads);
    const bool can_divide = std::isfinite(total) && total > 0;
    for (int64_t j = 0; j < n; ++j) {
      const double self = i == j ? 1 : 0;
      weights[static_cast<size_t>(i * n + j)] =
          static_cast<float>(can_divide ? (row[static_cast<size_t>(j)] + self) / total : self);
    }
  }
  return Tensor::of<float>(weights, Shape{1, n, n});
}

/// Sets the rollout of a stack of maps, one a layer; leaves them without where it is not defined.
void roll_out(const std::vector<MapView*>& stack, int64_t longest) {
  for (size_t layer = 0; layer < stack.size(); ++layer) {
    const MapView& map = *stack[layer];
    if (map.layer != static_cast<int64_t>(layer) || map.queries != map.keys || map.queries > longest ||
        map.queries != stack.front()->queries)
      return;
  }
  const NoGrad no_grad;
  Tensor rollout;  // R_l
  for (MapView* map : stack) {
    const Tensor layer = mean_map_with_identity(*map);
    rollout = rollout ? matmul(layer, rollout) : layer;
    map->rollout = rollout.to_host();
  }
}

}  // namespace

void add_rollout(std::vector<MapView>& maps, int64_t longest) {
  std::map<std::string, std::vector<MapView*>> stacks;
  for (MapView& map : maps)
    if (map.kind != "cross") stacks[map.kind].push_back(&map);
  for (auto& [kind, stack] : stacks) {
    std::stable_sort(stack.begin(), stack.end(),
                     [](const MapView* a, const MapView* b) { return a->layer < b->layer; });
    roll_out(stack, longest);
  }
}

}  // namespace heed
