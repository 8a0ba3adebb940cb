// What the backward passes of a thread have met that an optimizer can warn of: dropout that was left out, and
// leaves that no optimizer has.
#pragma once

#include <memory>
#include <vector>

#include "heed/autograd/node.h"

namespace heed {

/// A leaf outside of every optimizer that a gradient has reached.
struct StrayLeaf {
  std::weak_ptr<Node> leaf;  ///< expires with the leaf
  const char* op = "";       ///< the op that read it
};

/// Findings of backward passes.
struct BackwardFindings {
  double omitted_dropout = 0;     ///< largest Node::omitted_dropout on the way to the loss; 0: none
  std::vector<StrayLeaf> strays;  ///< in the order of the gradients; at most max_stray_leaves
};

/// Strays that are kept until someone takes the findings.
inline constexpr size_t max_stray_leaves = 64;

/// The findings of this thread's backward passes since the last call, which are forgotten then.
BackwardFindings take_backward_findings();

namespace detail {
/// Records that the backward pass has reached this node.
void find_omitted_dropout(const Node& node);
/// Records that a gradient of `reader` reaches `leaf`, unless an optimizer has the leaf.
void find_stray(const std::shared_ptr<Node>& leaf, const Node& reader);
}  // namespace detail

}  // namespace heed
