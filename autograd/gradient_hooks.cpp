// Counts pending uses of leaves, and calls gradient hooks.
#include "heed/autograd/gradient_hooks.h"

#include <algorithm>
#include <string_view>

namespace heed {
namespace {

thread_local std::vector<GradientHooks::Hook> hooks;
thread_local int depth = 0;  // nested backward passes

}  // namespace

GradientHooks::GradientHooks(Hook hook) { hooks.push_back(std::move(hook)); }
GradientHooks::~GradientHooks() { hooks.pop_back(); }

PendingUses::PendingUses(const std::vector<std::shared_ptr<Node>>& order) {
  // An inner backward pass adds to gradients that the outer one may still add to, so it calls no hooks.
  if (++depth > 1 || hooks.empty()) return;
  const auto hides_leaves = [](const auto& node) { return std::string_view(node->op) == recompute_op; };
  if (std::any_of(order.begin(), order.end(), hides_leaves)) return;
  for (const auto& node : order) {
    for (const auto& input : node->inputs) {
      if (input && input->leaf) ++uses_[input.get()];
    }
  }
}

PendingUses::~PendingUses() { --depth; }

void PendingUses::gradients_added(const Node& node) {
  if (uses_.empty()) return;
  for (const auto& input : node.inputs) {
    if (input && input->leaf && --uses_.at(input.get()) == 0) hooks.back()(*input);
  }
}

}  // namespace heed
