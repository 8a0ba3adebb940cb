// Recomputation: the forward pass records nothing, the backward pass records and runs f again.
#include "heed/autograd/recompute.h"

#include <memory>
#include <optional>
#include <vector>

#include "heed/autograd/autocast.h"
#include "heed/autograd/gradient_hooks.h"
#include "heed/autograd/tape.h"
#include "heed/core/scope.h"

namespace heed {

Tensor checkpoint(const std::function<Tensor(std::span<const Tensor>)>& f, std::span<const Tensor> inputs,
                  Rng* rng) {
  if (!recording()) return f(inputs);
  const std::optional<Rng> rng_state = rng != nullptr ? std::optional<Rng>(*rng) : std::nullopt;
  Tensor y;
  {
    const NoGrad no_grad;
    y = f(inputs).detach();
  }
  // The node of the checkpoint owns the nodes of the inputs. Owning them in vjp too would destroy chains of
  // checkpoints recursively.
  std::vector<Tensor> detached;
  std::vector<std::weak_ptr<Node>> nodes;
  for (const Tensor& input : inputs) {
    detached.push_back(input.detach());
    nodes.emplace_back(input.node());
  }
  const auto vjp = [f, detached, nodes, rng, rng_state, module = ModuleScope::innermost(),
                    rounding = product_rounding()](const Tensor& dy) -> Gradients {
    std::vector<Tensor> inputs_again = detached;
    for (size_t i = 0; i < inputs_again.size(); ++i) inputs_again[i].set_node(nodes[i].lock());
    if (rng != nullptr && !rng->at_tick_of(*rng_state)) {
      fail(
          "checkpoint: the random source was advanced before the gradient was taken. Call advance() after "
          "backward().");
    }
    const Autocast autocast(rounding);
    const uint64_t first = detail::next_order();
    Tensor result;
    {
      std::optional<ScopedValue<Rng>> forward_rng;  // draws the numbers of the forward pass again
      if (rng != nullptr) forward_rng.emplace(*rng, *rng_state);
      const EnableGrad enable_grad;
      const ModuleScope scope(module);
      result = f(inputs_again);
    }
    if (!(result.shape() == dy.shape())) {
      fail("the function gave ", dy.shape(), " at first and now ", result.shape(),
           ". Both calls must agree.");
    }
    detail::backward_since(first, result, dy, inputs_again);
    return Gradients(detached.size());  // empty: the inner backward pass has added them
  };
  return record_always(recompute_op, y, inputs, vjp);
}

}  // namespace heed
