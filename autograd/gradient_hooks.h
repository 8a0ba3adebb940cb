// Gradient hooks: functions called during backward() when a parameter's gradient is complete.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "heed/autograd/node.h"
#include "heed/core/scope.h"

namespace heed {

/// While one lives, backward() in this thread calls the hook for each leaf when its gradient is complete, in
/// an order that depends on the graph alone. Backward through a recomputed segment calls no hooks: its leaves
/// are internal.
class GradientHooks : NonCopyable {
 public:
  using Hook = std::function<void(const Node& leaf)>;  ///< takes the leaf, whose gradient is in leaf.grad
  explicit GradientHooks(Hook hook);                   ///< nests: the innermost hook is called
  ~GradientHooks();
};

/// Name of the op of recompute.h, whose gradient reaches leaves that are not among its inputs.
inline constexpr const char* recompute_op = "checkpoint";

/// Calls the gradient hook during one backward(): counts the uses of each leaf whose gradient is not added
/// yet.
class PendingUses : NonCopyable {
 public:
  /// `order`: nodes as backward() will visit them.
  explicit PendingUses(const std::vector<std::shared_ptr<Node>>& order);
  ~PendingUses();

  /// Counts the uses by `node`, whose gradients have been added to its inputs; calls the hook for leaves
  /// without other uses.
  void gradients_added(const Node& node);

 private:
  std::unordered_map<const Node*, int64_t> uses_;  // pending uses of leaves; empty where there is no hook
};

}  // namespace heed
