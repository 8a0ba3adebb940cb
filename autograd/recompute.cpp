// Checkpoints: the forward pass leaves no tape, the sweep makes it anew.
#include "autograd/checkpoint.h"

#include <memory>
#include <optional>
#include <vector>

#include "autograd/arrivals.h"
#include "autograd/rounding.h"
#include "autograd/tape.h"

namespace heed {
namespace {

/// Puts a random source back to where it stood, and afterwards to where it is now.
class Redraw {
 public:
  Redraw(Rng* rng, const std::optional<Rng>& then) : rng_(rng) {
    if (rng_ == nullptr) return;
    if (!rng_->at_tick_of(*then)) {
      fail(
          "checkpoint: the random source was advanced before the gradient was taken. Call advance() after "
          "backward().");
    }
    now_ = std::make_unique<Rng>(*rng_);
    *rng_ = *then;
  }
  ~Redraw() {
    if (rng_ != nullptr) *rng_ = *now_;
  }
  Redraw(const Redraw&) = delete;
  Redraw& operator=(const Redraw&) = delete;

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
    const NoTape no_tape;
    y = f(inputs).detach();
  }
  // The nodes are held by the node of the checkpoint; a second hold here would make chains of checkpoints end
  // recursively.
  std::vector<Tensor> values;
  std::vector<std::weak_ptr<Node>> nodes;
  for (const Tensor& input : inputs) {
    values.push_back(input.detach());
    nodes.emplace_back(input.node());
  }
  const auto vjp = [f, values, nodes, rng, then, module = Within::innermost(),
                    rounding = product_rounding()](const Tensor& dy) -> Gradients {
    std::vector<Tensor> again = values;
    for (size_t i = 0; i < again.size(); ++i) again[i].set_node(nodes[i].lock());
    const ProductsRounded as_then(rounding);
    const uint64_t first = detail::next_order();
    Tensor result;
    {
      const Redraw redraw(rng, then);
      const Retape retape;
      const Within within(module);
      result = f(again);
    }
    if (!(result.shape() == dy.shape())) {
      fail("the function gave ", dy.shape(), " at first and now ", result.shape(),
           ". Both calls must agree.");
    }
    detail::backward_since(first, result, dy, again);
    return Gradients(values.size());  // they were handed on by the sweep inside
  };
  return record_always(checkpoint_op, y, inputs, vjp);
}

}  // namespace heed
