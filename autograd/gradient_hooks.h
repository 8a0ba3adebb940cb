// Gradient hooks: functions called during backward() when a parameter's gradient is complete.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "heed/autograd/node.h"

namespace heed {

/// While one lives, backward() in this thread calls `arrived` for each leaf when its gradient is complete.
/// The order depends on the graph alone. Backward through a recomputed segment calls it for no leaf: the
/// leaves of the segment are internal.
class GradientHooks {
 public:
  using Hook = std::function<void(const Node& leaf)>;  ///< takes the leaf, whose gradient is in leaf.grad
  explicit GradientHooks(Hook arrived);                ///< nests: the innermost one is called
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;
};

/// The name of the op whose gradient reaches leaves that are not among its inputs.
inline constexpr const char* recompute_op = "checkpoint";

/// Counts the pending uses of each leaf during one backward() over the nodes in `order`.
class PendingUses {
 public:
  /// `order`: nodes as backward() will visit them.
  explicit PendingUses(const std::vector<std::shared_ptr<Node>>& order);
  ~PendingUses();
  PendingUses(const PendingUses&) = delete;
  PendingUses& operator=(const PendingUses&) = delete;

  /// Call when the gradients of `node` have been added to its inputs.
  void passed(const Node& node);

 private:
  std::unordered_map<const Node*, int64_t> uses_;  // of leaves, still to come; empty: nobody listens
};

}  // namespace heed
