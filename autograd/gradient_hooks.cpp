// Counting the uses of leaves.
#include "autograd/arrivals.h"

#include <algorithm>
#include <string_view>

namespace heed {
namespace {

thread_local std::vector<Arrivals::Arrived> listeners;
thread_local int sweeps = 0;  // one inside the other

}  // namespace

Arrivals::Arrivals(Arrived arrived) { listeners.push_back(std::move(arrived)); }
Arrivals::~Arrivals() { listeners.pop_back(); }

Completions::Completions(const std::vector<std::shared_ptr<Node>>& order) {
  // A sweep inside another adds to gradients that the outer one may add to as well.
  if (++sweeps > 1 || listeners.empty()) return;
  const auto hides_leaves = [](const auto& node) { return std::string_view(node->op) == checkpoint_op; };
  if (std::any_of(order.begin(), order.end(), hides_leaves)) return;
  for (const auto& node : order) {
    for (const auto& input : node->inputs) {
      if (input && input->leaf) ++uses_[input.get()];
    }
  }
}

Completions::~Completions() { --sweeps; }

void Completions::passed(const Node& node) {
  if (uses_.empty()) return;
  for (const auto& input : node.inputs) {
    if (input && input->leaf && --uses_.at(input.get()) == 0) listeners.back()(*input);
  }
}

}  // namespace heed
