// Who is told of gradients while the sweep still runs.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "autograd/node.h"

namespace heed {

/// While one lives, backward() of this thread calls `arrived` for each leaf it meets, once no more of the
/// leaf's gradient can come in that sweep; in an order that the graph alone decides. A sweep through a
/// checkpoint, which holds leaves that are nobody's inputs, tells of none.
class Arrivals {
 public:
  using Arrived = std::function<void(const Node& leaf)>;
  explicit Arrivals(Arrived arrived);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;
};

/// The op whose gradient reaches leaves that are not among its inputs.
inline constexpr const char* checkpoint_op = "checkpoint";

/// What a sweep over the nodes in `order` has to tell.
class Completions {
 public:
  explicit Completions(const std::vector<std::shared_ptr<Node>>& order);
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// The node's gradients have been handed to its inputs.
  void passed(const Node& node);

 private:
  std::unordered_map<const Node*, int64_t> uses_;  // of leaves, still to come; empty: nobody listens
};

}  // namespace heed
