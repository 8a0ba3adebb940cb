// Node: one recorded op of the graph, or a leaf.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "heed/core/scope.h"
#include "heed/core/tensor.h"

namespace heed {

/// The gradient of each input of an op; empty where none flows.
using Gradients = std::vector<Tensor>;
/// Computes the gradients of an op's inputs from that of its result (a vector-Jacobian product).
using Vjp = std::function<Gradients(const Tensor& dy)>;

/// One recorded op, or a leaf: a parameter that keeps its gradient.
struct Node : NonCopyable {
  Node();
  ~Node();

  const char* op = "leaf";                    ///< for errors, Trace and summaries
  std::vector<std::shared_ptr<Node>> inputs;  ///< null where no gradient is wanted
  Vjp vjp;                                    ///< empty for a leaf
  Tensor grad;                                ///< kept by leaves; freed by others during backward()
  uint64_t order = 0;                         ///< creation order is already topological
  Shape shape;                                ///< shape of the result and its gradient
  DType dtype = DType::f32;                   ///< dtype of the result and its gradient
  const void* module = nullptr;               ///< the innermost ModuleScope when it was recorded
  bool leaf = false;                          ///< made by leaf(): the gradient stays after backward()
  /// True for a leaf whose gradient lies in an optimizer's buffer: written there, never replaced. While
  /// `fresh`, the next gradient overwrites the buffer; later ones are added.
  bool in_arena = false;
  bool fresh = false;  ///< see in_arena; cleared with the first gradient
  std::shared_ptr<Node> next =
      {};  ///< links nodes that are being destroyed, so that long chains do not recurse

  /// The storages that the op read and wrote, and their versions: a change before backward() is an error. Does
  /// not keep the numbers alive.
  std::vector<std::pair<std::weak_ptr<Storage>, uint64_t>> seen;
};

/// The number of nodes alive in the program; zero after training means that nothing leaks.
int64_t live_nodes();

}  // namespace heed
