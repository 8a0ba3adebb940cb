// Recomputation: the forward pass records nothing, the backward pass records and runs f again.
#include "heed/autograd/recompute.h"

#include <memory>
#include <optional>
#include <vector>

#include "heed/autograd/autocast.h"
#include "heed/autograd/gradient_hooks.h"
#include "heed/autograd/tape.h"

namespace heed {
namespace {

/// Resets a random number generator to its state in the forward pass, and restores its present state when
/// destroyed.
class ResetRng {
 public:
  ResetRng(Rng* rng, const std::optional<Rng>& then) : rng_(rng) {
    if (rng_ == nullptr) return;
    if (!rng_->at_tick_of(*then)) {
      fail(
          "checkpoint: the random source was advanced before the gradient was taken. Call advance() after "
          "backward().");
    }
    now_ = std::make_unique<Rng>(*rng_);
    *rng_ = *then;
  }
  ~ResetRng() {
    if (rng_ != nullptr) *rng_ = *now_;
  }
  ResetRng(const ResetRng&) = delete;
  ResetRng& operator=(const ResetRng&) = delete;

 private:
  Rng* rng_;
  std::unique_ptr<const Rng> now_;
};

}  // namespace

Tensor checkpoint(const std::function<Tensor(std::span<const Tensor>)>& f, std::span<const Tensor> inputs,
                  Rng* rng) {
  if (!recording()) return f(inputs);
  const std::optional<Rng> then = rng != nullptr ? std::optional<Rng>(*rng) : std::nullopt;
  Tensor y;
  {
    const NoGrad no_grad;
    y = f(inputs).detach();
  }
  // The checkpoint's node owns the input nodes; owning them here too would destroy chains of checkpoints
  // recursively.
  std::vector<Tensor> values;
  std::vector<std::weak_ptr<Node>> nodes;
  for (const Tensor& input : inputs) {
    values.push_back(input.detach());
    nodes.emplace_back(input.node());
  }
  const auto vjp = [f, values, nodes, rng, then, module = ModuleScope::innermost(),
                    rounding = product_rounding()](const Tensor& dy) -> Gradients {
    std::vector<Tensor> again = values;
    for (size_t i = 0; i < again.size(); ++i) again[i].set_node(nodes[i].lock());
    const Autocast as_then(rounding);
    const uint64_t first = detail::next_order();
    Tensor result;
    {
      const ResetRng reset(rng, then);
      const EnableGrad retape;
      const ModuleScope within(module);
      result = f(again);
    }
    if (!(result.shape() == dy.shape())) {
      fail("the function gave ", dy.shape(), " at first and now ", result.shape(),
           ". Both calls must agree.");
    }
    detail::backward_since(first, result, dy, again);
    return Gradients(values.size());  // the inner backward pass has added them already
  };
  return record_always(recompute_op, y, inputs, vjp);
}

}  // namespace heed
