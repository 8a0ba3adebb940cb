// Recording what is computed, and sweeping gradients back through it.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include "autograd/node.h"

namespace heed {

/// Marks `x` as a leaf: gradients of what is computed from it are kept in grad_of(x).
Tensor leaf(const Tensor& x);
/// The gradient of a leaf after backward(); empty when none has reached it.
Tensor grad_of(const Tensor& x);

/// Notes on y how to find the gradients of its inputs. Returns y untouched when no input wants one or a
/// NoTape lives. `vjp` keeps detached handles only: y itself may be among them, because it has no node yet.
Tensor record(const char* op, const Tensor& y, std::initializer_list<const Tensor*> inputs, Vjp vjp);
Tensor record(const char* op, const Tensor& y, std::span<const Tensor> inputs, Vjp vjp);
/// The same for an op that holds parameters of its own: recorded whenever recording is on.
Tensor record_always(const char* op, const Tensor& y, std::span<const Tensor> inputs, Vjp vjp);
bool recording();

/// Adds to the gradient of every leaf that `loss` (one element) was computed from, and frees each node as it
/// passes. Fails when nothing was recorded, when a part was swept before, or naming the op whose gradient
/// failed; after the last, the leaves hold what had arrived by then.
void backward(const Tensor& loss);
/// The same for a result of any shape, from the gradient dy of its elements.
void backward(const Tensor& y, const Tensor& dy);

/// Nothing is recorded in this thread while one lives.
struct NoTape {
  NoTape();
  ~NoTape();
  NoTape(const NoTape&) = delete;
  NoTape& operator=(const NoTape&) = delete;
};

/// Recording is on in this thread while one lives, whatever NoTape is around it: for computing again inside a
/// gradient.
struct Retape {
  Retape();
  ~Retape();
  Retape(const Retape&) = delete;
  Retape& operator=(const Retape&) = delete;

 private:
  int before_;
};

/// Ops recorded while one lives belong to `module`, which Trace and errors of backward() name; so does the
/// memory they take.
struct Within {
  explicit Within(const void* module);
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  static const void* innermost();
};

/// "first bad value in WHERE (inf): WHAT, 3 of 4096 values, shape [2, 64, 32]" for the first value of x that
/// is not finite; empty when there is none. Waits for the device.
std::string first_bad_value(const Tensor& x, const std::string& where, const std::string& what);

/// What Trace throws (Fault::numeric).
class NotFinite : public Error {
 public:
  explicit NotFinite(const std::string& sentence)
      : Error(Fault::numeric, "trace: " + sentence + ". Look at its inputs, or lower the learning rate."),
        sentence_(sentence) {}
  const std::string& sentence() const { return sentence_; }  ///< of first_bad_value()

 private:
  std::string sentence_;
};

/// While one lives, the first op whose result (forward) or gradient (backward) holds a value that is not
/// finite throws NotFinite, which names the op and, through `name`, the module it ran in. Masks are
/// not errors: -inf may come out of select() and out of ops that read -inf. It waits for the device after
/// every op: for looking, not for training.
class Trace {
 public:
  using Name = std::function<std::string(const void* module)>;
  explicit Trace(Name name = {});
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
};

namespace detail {
/// Nodes recorded from here on have this order or a higher one.
uint64_t next_order();
/// backward() through nodes of order `first` and later only. What arrives at older ones waits there for the
/// sweep in progress; those must be leaves or among `inputs`.
void backward_since(uint64_t first, const Tensor& y, const Tensor& dy, std::span<const Tensor> inputs);
}  // namespace detail

}  // namespace heed
