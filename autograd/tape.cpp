// The tape: recording of nodes, the backward pass, and Trace.
#include "heed/autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "heed/autograd/backward_findings.h"
#include "heed/autograd/gradient_hooks.h"
#include "heed/autograd/joint_gradient.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/scope.h"
#include "heed/core/timeline.h"

namespace heed {
namespace {

std::atomic<int64_t> num_alive{0};     // nodes of the program
std::atomic<uint64_t> num_created{0};  // gives Node::order
thread_local std::vector<Trace::Name> traces;
thread_local const Node* running = nullptr;  // the node whose vjp runs

/// The path of a module as the innermost Trace names it; empty without a Trace or a module.
std::string module_path(const void* module) {
  if (module == nullptr || traces.empty() || !traces.back()) return "";
  return traces.back()(module);
}

/// " in PATH" for messages; empty where the path is.
std::string in_module(const void* module) {
  const std::string path = module_path(module);
  return path.empty() ? "" : " in " + path;
}

/// Number of NaN and infinite elements; 0 for types other than f32 and f64.
int64_t count_non_finite(const Tensor& x) {
  if (!x || (x.dtype() != DType::f32 && x.dtype() != DType::f64) || x.size() == 0) return 0;
  const Tensor count = Tensor::zeros(Shape{1}, DType::i64, x.device());
  launch<kernel::CountNonFinite>(x.device(), x.detach(), count);
  return static_cast<int64_t>(count.item());
}

/// Whether the values of x that are not finite come from a mask: they are -inf, and the op is where() or has
/// an input with -inf.
bool is_only_masked(std::string_view op, const Tensor& x, std::span<const Tensor* const> inputs) {
  const auto is_masked = [](double value) { return value == -HUGE_VAL; };
  for (const double value : x.to_doubles()) {
    if (!std::isfinite(value) && !is_masked(value)) return false;
  }
  return op == "where" || std::any_of(inputs.begin(), inputs.end(), [&](const Tensor* input) {
           if (count_non_finite(*input) == 0) return false;
           const std::vector<double> values = input->to_doubles();
           return std::any_of(values.begin(), values.end(), is_masked);
         });
}

/// Throws NotFinite unless x is finite; `what` and `op` name it in the error.
void check_finite(const char* what, const char* op, const Tensor& x, const void* module) {
  const std::string path = module_path(module);
  const std::string sentence =
      first_bad_value(x, path.empty() ? "what no module computed" : path, text(what, op));
  if (!sentence.empty()) throw NotFinite(sentence);
}

}  // namespace

std::string first_bad_value(const Tensor& x, const std::string& where, const std::string& what) {
  const int64_t num_bad = count_non_finite(x);
  if (num_bad == 0) return "";
  const std::vector<double> values = x.to_doubles();
  const auto first =
      std::find_if_not(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  return text("first bad value in ", where, " (", *first, "): ", what, ", ", num_bad, " of ", x.size(),
              " values, shape ", x.shape());
}

Node::Node() : order(num_created.fetch_add(1, std::memory_order_relaxed)) {
  num_alive.fetch_add(1, std::memory_order_relaxed);
}

// Destroying a long chain of nodes recursively would overflow the stack. Nodes without other owners are
// linked into a list, without allocating memory, and destroyed one by one.
Node::~Node() {
  std::shared_ptr<Node> dying;
  const auto release = [&dying](std::vector<std::shared_ptr<Node>>& nodes) {
    for (auto& node : nodes) {
      if (node && node.use_count() == 1) {
        node->next = std::move(dying);
        dying = std::move(node);
      }
      node.reset();
    }
  };
  release(inputs);
  while (dying) {
    const std::shared_ptr<Node> node = std::move(dying);
    dying = std::move(node->next);
    release(node->inputs);
  }
  num_alive.fetch_sub(1, std::memory_order_relaxed);
}

int64_t live_nodes() { return num_alive.load(); }

Tensor leaf(const Tensor& x) {
  if (!is_float(x.dtype())) fail("leaf: a tensor of ", x.dtype(), " has no gradient. Use f32 or f64.");
  Tensor out = x.detach();
  auto node = std::make_shared<Node>();
  node->leaf = true;
  node->shape = x.shape();
  node->dtype = x.dtype();
  out.set_node(std::move(node));
  return out;
}

Tensor grad_of(const Tensor& x) {
  if (!x.node() || !x.node()->leaf)
    fail("grad_of: not a leaf. Mark it with leaf(x) before computing from it.");
  return x.node()->fresh ? Tensor() : x.node()->grad;
}

namespace {

/// A handle on y whose history is a new node of the op. `read` are the tensors that the op read.
Tensor with_node(const char* op, const Tensor& y, std::vector<std::shared_ptr<Node>> inputs, Vjp vjp,
                 std::span<const Tensor* const> read) {
  Tensor out = y.detach();
  auto node = std::make_shared<Node>();
  node->op = op;
  node->inputs = std::move(inputs);
  node->vjp = std::move(vjp);
  node->module = ModuleScope::innermost();
  node->shape = y.shape();
  node->dtype = y.dtype();
  node->seen.emplace_back(y.storage(), y.storage()->version);
  for (const Tensor* input : read) {
    if (*input) node->seen.emplace_back(input->storage(), input->storage()->version);
  }
  out.set_node(std::move(node));
  return out;
}

/// record(): also adds the op to the Timeline, and checks its result for a Trace.
Tensor record_op(const char* op, const Tensor& y, std::span<const Tensor* const> inputs, Vjp vjp,
                 bool always = false) {
  if (Timeline* timeline = Timeline::active()) timeline->slice_since_mark("op", op, ModuleScope::innermost());
  if (!traces.empty() && count_non_finite(y) > 0 && !is_only_masked(op, y, inputs)) {
    check_finite("the result of ", op, y, ModuleScope::innermost());
  }
  if (!recording()) return y;
  const auto has_node = [](const Tensor* input) { return input->node() != nullptr; };
  if (!always && std::none_of(inputs.begin(), inputs.end(), has_node)) return y;
  std::vector<std::shared_ptr<Node>> nodes;
  nodes.reserve(inputs.size());
  for (const Tensor* input : inputs) nodes.push_back(input->node());
  return with_node(op, y, std::move(nodes), std::move(vjp), inputs);
}

std::vector<const Tensor*> pointers(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> out;
  out.reserve(tensors.size());
  for (const Tensor& tensor : tensors) out.push_back(&tensor);
  return out;
}

}  // namespace

Tensor record(const char* op, const Tensor& y, std::initializer_list<const Tensor*> inputs, Vjp vjp) {
  return record_op(op, y, std::span(inputs.begin(), inputs.size()), std::move(vjp));
}

Tensor record(const char* op, const Tensor& y, std::span<const Tensor> inputs, Vjp vjp) {
  return record_op(op, y, pointers(inputs), std::move(vjp));
}

Tensor record_always(const char* op, const Tensor& y, std::span<const Tensor> inputs, Vjp vjp) {
  return record_op(op, y, pointers(inputs), std::move(vjp), /*always=*/true);
}

namespace {

Tensor copy_of(const Tensor& x) {
  Tensor out = empty_like(x);
  launch<kernel::Copy>(x.device(), x, out);
  return out;
}

/// Adds a gradient to that of the node, unless it was written there: see gradient_target().
void add_to(Node& node, Tensor gradient) {
  if (node.in_arena && gradient.raw() == node.grad.raw()) return;
  const auto is_unshared = [](const Tensor& x) { return x.storage().use_count() == 1 && x.contiguous(); };
  if (node.in_arena && node.fresh) {
    launch<kernel::Copy>(gradient.device(), gradient, node.grad);
  } else if (node.in_arena) {
    launch<kernel::Accumulate>(gradient.device(), gradient, node.grad);
  } else if (!node.grad) {
    // A leaf keeps a dense gradient of its own, because an op may pass one gradient to several inputs.
    node.grad = node.leaf && !is_unshared(gradient) ? copy_of(gradient) : std::move(gradient);
  } else {
    Tensor sum = is_unshared(node.grad) ? node.grad : copy_of(node.grad);
    launch<kernel::Accumulate>(sum.device(), gradient, sum);
    node.grad = std::move(sum);
  }
  node.fresh = false;
}

using Nodes = std::vector<std::shared_ptr<Node>>;

/// All nodes of order `first` or later that `root` depends on, in order of creation. Fails, before anything
/// is changed, where one of them was visited by a backward pass, and where an older node is neither a leaf
/// nor in `borders`.
Nodes reachable(const std::shared_ptr<Node>& root, uint64_t first,
                const std::unordered_set<const Node*>& borders) {
  Nodes found;
  std::unordered_set<const Node*> visited;
  const auto visit = [&](const std::shared_ptr<Node>& node) {
    if (!node || node->leaf || !visited.insert(node.get()).second) return;
    if (!node->vjp) {
      fail("backward: ", node->op,
           " was already swept. Compute the loss anew for each backward(), and detach() what is ",
           "carried from one step into the next.");
    }
    if (node->order >= first) {
      found.push_back(node);
    } else if (!borders.contains(node.get())) {
      fail("checkpoint: the function uses the result ", node->shape, " of ", node->op,
           ", which is not among its inputs. Pass it as an input.");
    }
  };
  visit(root);
  for (size_t i = 0; i < found.size(); ++i) {
    const Node& node = *found[i];
    for (const auto& input : node.inputs) visit(input);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a->order < b->order; });
  return found;
}

/// Fails where a tensor that the op read or made has changed since it was recorded.
void check_unchanged(const Node& node) {
  for (const auto& [weak, version] : node.seen) {
    const auto storage = weak.lock();
    if (storage && storage->version != version) {
      fail("backward: a tensor that ", node.op, in_module(node.module),
           " has read or made was overwritten before its gradient was taken. ",
           "Step the optimizer or change a memory after backward().");
    }
  }
}

/// Fails unless a gradient has the shape and dtype of its input.
void check_gradient(const Node& node, size_t index, const Tensor& gradient) {
  const Node& input = *node.inputs[index];
  if (!(gradient.shape() == input.shape) || gradient.dtype() != input.dtype) {
    fail(Fault::internal, "backward of ", node.op, ": the gradient of input ", index, " is ",
         gradient.dtype(), " ", gradient.shape(), ", the input ", input.dtype, " ", input.shape, ".");
  }
}

/// The gradients of the node's inputs from that of its result. Errors name the op and its module.
Gradients gradients_of(const Node& node, const Tensor& dy) {
  check_unchanged(node);
  const MemoryScope memory_scope(node.module);
  Timeline* timeline = Timeline::active();
  const int64_t start = timeline != nullptr ? Timeline::now() : 0;
  if (timeline != nullptr) timeline->mark();  // recomputed ops begin here
  const AtScopeEnd slice([&] {
    if (timeline == nullptr) return;
    timeline->slice("gradient", node.op, node.module, start);
    timeline->mark();  // an op that follows begins here
  });
  const ScopedValue<const Node*> now_running(running, &node);
  Gradients gradients;
  try {
    gradients = node.vjp(dy);
  } catch (const NotFinite&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.fault(), text("backward of ", node.op, in_module(node.module), ": ", error.what()));
  }
  if (gradients.size() != node.inputs.size()) {
    fail(Fault::internal, "backward of ", node.op, ": ", gradients.size(), " gradients for ",
         node.inputs.size(), " inputs.");
  }
  return gradients;
}

/// Adds the gradients of the leaves and of `borders` that y depends on through nodes of order `first` or
/// later.
void run_backward(const Tensor& y, const Tensor& dy, uint64_t first,
                  const std::unordered_set<const Node*>& borders) {
  if (!dy || !(dy.shape() == y.shape()) || dy.dtype() != y.dtype()) {
    fail("backward: the gradient is ", dy ? text(dy.dtype(), " ", dy.shape()) : "empty", ", the result ",
         y.dtype(), " ", y.shape(), ". They must agree.");
  }
  const NoGrad no_grad;
  // The list owns the nodes: visiting a node drops its inputs.
  Nodes order = reachable(y.node(), first, borders);
  // Where the pass fails, nodes that are left must not keep pending gradients.
  const AtScopeEnd clear_gradients([&order] {
    for (const auto& node : order) node->grad = Tensor();
  });
  PendingUses pending_uses(order);
  add_to(*y.node(), dy.detach());
  while (!order.empty()) {
    Node& node = *order.back();
    detail::find_omitted_dropout(node);
    if (Tensor gradient = std::move(node.grad)) {
      node.grad = Tensor();
      Gradients gradients = gradients_of(node, gradient);
      gradient = Tensor();
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (!node.inputs[i] || !gradients[i]) continue;
        check_gradient(node, i, gradients[i]);
        if (!traces.empty()) check_finite("a gradient of ", node.op, gradients[i], node.module);
        add_to(*node.inputs[i], std::move(gradients[i]));
        detail::find_stray(node.inputs[i], node);
      }
    }
    pending_uses.gradients_added(node);
    node.vjp = nullptr;
    node.inputs.clear();
    node.seen.clear();
    order.pop_back();
  }
}

/// Input `index` of the node whose vjp runs; null where it has none.
Node* running_input(size_t index) {
  return running != nullptr && index < running->inputs.size() ? running->inputs[index].get() : nullptr;
}

}  // namespace

Tensor gradient_so_far(size_t index) {
  Node* input = running_input(index);
  if (input == nullptr || input->leaf || !input->grad) return {};
  const Tensor gradient = std::exchange(input->grad, Tensor());
  return gradient.contiguous() ? gradient : copy_of(gradient);
}

Tensor gradient_target(size_t index, const Shape& shape, DType dtype, Device device) {
  Node* input = running_input(index);
  if (input == nullptr || !input->in_arena || !input->fresh) return Tensor(shape, dtype, device);
  input->fresh = false;  // another op, or another input of this one, adds to it
  return input->grad;
}

Tensor joint_gradient_target(size_t first, size_t count, const Shape& shape, DType dtype, Device device) {
  Tensor whole;
  int64_t end = 0;  // the place behind the last buffer
  for (size_t i = first; i < first + count; ++i) {
    const Node* input = running_input(i);
    const bool follows =
        input != nullptr && input->in_arena && input->fresh &&
        (!whole || (input->grad.storage() == whole.storage() && input->grad.offset() == end));
    if (!follows) return Tensor(shape, dtype, device);
    if (!whole) whole = input->grad;
    end = input->grad.offset() + input->grad.size();
  }
  for (size_t i = first; i < first + count; ++i) running_input(i)->fresh = false;
  return whole.seen_as(shape, Strides::contiguous(shape), whole.offset());
}

void backward(const Tensor& y, const Tensor& dy) {
  if (!y.node()) {
    fail(
        "backward: nothing was recorded. Compute the loss from a leaf or a module's parameters, outside "
        "NoGrad. What grad_of() gives is a constant: second derivatives are not supported.");
  }
  run_backward(y, dy, 0, {});
}

void backward(const Tensor& loss) {
  if (!loss) fail("backward: the loss is empty.");
  if (loss.size() != 1)
    fail("backward: the loss has shape ", loss.shape(), ". Reduce it to one number, say with mean().");
  backward(loss, Tensor::full(loss.shape(), 1.0, loss.dtype(), loss.device()));
}

uint64_t detail::next_order() { return num_created.load(std::memory_order_relaxed); }

void detail::backward_since(uint64_t first, const Tensor& y, const Tensor& dy,
                            std::span<const Tensor> inputs) {
  std::unordered_set<const Node*> borders;
  for (const Tensor& input : inputs) {
    if (input.node()) borders.insert(input.node().get());
  }
  if (y.node()) run_backward(y, dy, first, borders);
}

Trace::Trace(Name name) { traces.push_back(std::move(name)); }
Trace::~Trace() { traces.pop_back(); }

}  // namespace heed
