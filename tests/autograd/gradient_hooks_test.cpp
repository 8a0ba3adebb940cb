// Which hooks run when gradients are complete.
#include "heed/autograd/gradient_hooks.h"

#include <map>

#include "heed/autograd/ops.h"
#include "heed/autograd/recompute.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

Tensor number(double value) { return leaf(Tensor::full(Shape{1}, value)); }

}  // namespace

TEST_CASE("gradient hooks: called once for a leaf, when its gradient is complete") {
  const Tensor a = number(2), b = number(3), c = number(5);
  // a is used three times, b first and last, c in the middle.
  const Tensor loss = sum((a * b + a * c) * a + b);
  std::vector<const Node*> order;
  std::map<const Node*, double> then;
  {
    const GradientHooks watching([&](const Node& leaf) {
      order.push_back(&leaf);
      then[&leaf] = leaf.grad.item();
    });
    backward(loss);
  }
  REQUIRE(order.size() == 3);
  for (const Tensor* x : {&a, &b, &c}) CHECK(then.at(x->node().get()) == grad_of(*x).item());
  CHECK(grad_of(a).item() == 2 * 2 * (3 + 5));
  // Nobody listens any more.
  backward(sum(a * b));
  CHECK(order.size() == 3);
}

TEST_CASE("gradient hooks: called first for the leaf that was used last") {
  const Tensor first = number(2), last = number(3);
  std::vector<const Node*> order;
  const GradientHooks watching([&](const Node& leaf) { order.push_back(&leaf); });
  Tensor x = first * 2.0;
  for (int i = 0; i < 5; ++i) x = x * 1.5;
  backward(sum(x * last));
  CHECK(order == std::vector<const Node*>{last.node().get(), first.node().get()});
}

TEST_CASE(
    "gradient hooks: not called by the backward pass of a recomputed segment, whose leaves are internal") {
  const Tensor a = number(2), b = number(3);
  int told = 0;
  const GradientHooks watching([&](const Node&) { ++told; });
  const Tensor inputs[] = {a};
  const Tensor y = checkpoint([&](std::span<const Tensor> x) { return x[0] * b; }, inputs);
  backward(sum(y * b));
  CHECK(told == 0);
  CHECK(grad_of(b).item() == 2 * 2 * 3);
}
