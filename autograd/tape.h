// The tape: records ops and computes gradients by walking them in reverse.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include "heed/autograd/no_grad.h"
#include "heed/autograd/node.h"
#include "heed/core/scope.h"

namespace heed {

/// Marks `x` as a leaf: gradients of what is computed from it are kept in grad_of(x).
Tensor leaf(const Tensor& x);
/// The gradient of a leaf after backward(); empty when none has reached it. It is a constant: no gradient
/// flows through it, since second derivatives are not supported.
Tensor grad_of(const Tensor& x);

/// Attaches a node to y that computes the gradients of `inputs`. Returns y unchanged when no input needs a
/// gradient or a NoGrad is active. `vjp` captures detached tensors only; y may be among them, because it has
/// no node yet.
Tensor record(const char* op, const Tensor& y, std::initializer_list<const Tensor*> inputs, Vjp vjp);
/// record() for a list of inputs.
Tensor record(const char* op, const Tensor& y, std::span<const Tensor> inputs, Vjp vjp);
/// record() for an op that holds parameters of its own: it is recorded even when no input needs a gradient.
Tensor record_always(const char* op, const Tensor& y, std::span<const Tensor> inputs, Vjp vjp);

/// Where a vjp that is running writes the gradient of input `index`, which has this shape and dtype: the
/// optimizer's buffer of a parameter that got none in this step, so that nothing is copied there, else new
/// memory. The vjp writes all of it and returns it as that gradient.
Tensor gradient_target(size_t index, const Shape& shape, DType dtype, Device device);
/// gradient_target() of the shape, dtype and device of `like`.
inline Tensor gradient_target(size_t index, const Tensor& like) {
  return gradient_target(index, like.shape(), like.dtype(), like.device());
}

/// The dense gradient that the result of an earlier op, input `index` of the vjp that is running, has got
/// from the ops after it; empty where there is none. The vjp must add it to its own and return the sum.
Tensor gradient_so_far(size_t index);

/// Adds d loss / d leaf to the gradient of every leaf that `loss` (one element) depends on, and frees each
/// node after visiting it. Fails when nothing was recorded, when a part of the graph was visited before, and
/// when an op's gradient fails (the error names the op; leaves keep what they got until then).
void backward(const Tensor& loss);
/// backward() from a result of any shape and the gradient dy of its elements.
void backward(const Tensor& y, const Tensor& dy);

/// While one lives, recorded ops and allocated memory belong to `module`: Trace, errors of backward() and the
/// memory report name it.
struct ModuleScope : NonCopyable {
  /// `module` must outlive it; restores the previous module at its end.
  explicit ModuleScope(const void* module);
  ~ModuleScope();
  static const void* innermost();  ///< the module of the innermost scope of this thread; null outside of any
};

/// A sentence on the first value of x that is not finite: "first bad value in WHERE (inf): WHAT, 3 of 4096
/// values, shape [2, 64, 32]"; empty when there is none. Waits for the device.
std::string first_bad_value(const Tensor& x, const std::string& where, const std::string& what);

/// The error that Trace throws (Fault::numeric).
class NotFinite : public Error {
 public:
  /// `sentence`: see first_bad_value().
  explicit NotFinite(const std::string& sentence)
      : Error(Fault::numeric, "trace: " + sentence + ". Look at its inputs, or lower the learning rate."),
        sentence_(sentence) {}
  const std::string& sentence() const { return sentence_; }  ///< what first_bad_value() returned

 private:
  std::string sentence_;
};

/// While one lives, the first op whose result (forward) or gradient (backward) is not finite throws
/// NotFinite, which names the op and, by `name`, its module. Masks are no errors: where() and ops that read
/// -inf may return -inf. Waits for the device after every op: for debugging, not for training.
class Trace : NonCopyable {
 public:
  using Name = std::function<std::string(const void* module)>;  ///< the path of a module, for messages
  explicit Trace(Name name = {});  ///< without `name` the message has the op alone
  ~Trace();
};

namespace detail {
/// A lower bound of Node::order of all nodes that will be recorded.
uint64_t next_order();
/// backward() through nodes of order `first` and later only. Older nodes must be leaves or among `inputs`;
/// they keep their gradients for the backward() in progress.
void backward_since(uint64_t first, const Tensor& y, const Tensor& dy, std::span<const Tensor> inputs);
}  // namespace detail

}  // namespace heed
