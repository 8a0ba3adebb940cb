// Node: one recorded step of a computation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace heed {

/// One gradient for each input of an op; empty where none flows.
using Gradients = std::vector<Tensor>;
/// From the gradient of an op's result to those of its inputs (a vector-Jacobian product).
using Vjp = std::function<Gradients(const Tensor& dy)>;

/// One step on the tape, or a leaf: a parameter that keeps its gradient.
struct Node {
  Node();
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const char* op = "leaf";                    ///< for errors, Trace and summaries
  std::vector<std::shared_ptr<Node>> inputs;  ///< null where no gradient is wanted
  Vjp vjp;                                    ///< empty for a leaf
  Tensor grad;                                ///< leaves keep it; others let go at once
  uint64_t order = 0;                         ///< creation order is already topological
  Shape shape;                                ///< of the result, and so of its gradient
  DType dtype = DType::f32;                   ///< the same
  const void* module = nullptr;               ///< the innermost Within when it was recorded
  bool leaf = false;
  /// A leaf whose gradient lives in an optimizer's arena: written there, never replaced. While `fresh`, the
  /// next gradient overwrites what is there, later ones are added.
  bool in_arena = false;
  bool fresh = false;
  std::shared_ptr<Node> next = {};  ///< while a chain of nodes is destroyed

  /// What the op read and made, with the versions it saw: a change before the gradient is an error.
  /// Filled in debug builds only, and without keeping the numbers alive.
  std::vector<std::pair<std::weak_ptr<Storage>, uint64_t>> seen;
};

/// Nodes alive in the whole program; zero after training means nothing leaks.
int64_t live_nodes();

}  // namespace heed
