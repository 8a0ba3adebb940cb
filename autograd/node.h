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

  const char* op = "leaf";                    ///< name of the op, for errors, Trace and summaries
  std::vector<std::shared_ptr<Node>> inputs;  ///< nodes of the op's inputs; null where no gradient is wanted
  Vjp vjp;                                    ///< empty for a leaf, and after backward()
  Tensor grad;                   ///< gradient so far: leaves keep it, others drop it in backward()
  uint64_t order = 0;            ///< position in the order of creation, which is topological
  Shape shape;                   ///< shape of the result and its gradient
  DType dtype = DType::f32;      ///< dtype of the result and its gradient
  const void* module = nullptr;  ///< module of the innermost ModuleScope when it was recorded
  bool leaf = false;             ///< made by leaf(): the gradient stays after backward()
  bool in_arena = false;  ///< the gradient of this leaf is a part of an optimizer's buffer, never replaced
  bool fresh = false;  ///< in_arena: a gradient overwrites the buffer and clears this; later ones are added
  /// The rate of a dropout() of this result that had no random numbers and so changed nothing; 0: none.
  double omitted_dropout = 0;
  std::shared_ptr<Node> next =
      {};  ///< links nodes that are being destroyed, so that long chains do not recurse

  /// The storages that the op read and wrote, and their versions: a change before backward() is an error.
  /// Does not keep the numbers alive.
  std::vector<std::pair<std::weak_ptr<Storage>, uint64_t>> seen;
};

/// Number of nodes in the program; not zero after training means a leak.
int64_t live_nodes();

}  // namespace heed
