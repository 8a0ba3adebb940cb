// Tests autograd/in_place.h.
#include "heed/autograd/in_place.h"

#include "heed/autograd/ops.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Floats = std::vector<float>;

TEST_CASE("in place: copies, fills, adds and scales the numbers of a parameter, without a gradient") {
  const DefaultDevice device(any_device());
  const Tensor x = leaf(Tensor::zeros(Shape{2, 2}));
  copy_(x, Tensor::of<double>(std::vector<double>{1, 2}, Shape{2}));
  CHECK(x.to_host() == Floats{1, 2, 1, 2});
  add_(x, Tensor::from({1, 1}), 0.5);
  CHECK(x.to_host() == Floats{1.5, 2.5, 1.5, 2.5});
  scale_(x, 2);
  CHECK(x.to_host() == Floats{3, 5, 3, 5});
  fill_(view::slice(x, 1, 0, 1), 7);
  CHECK(x.to_host() == Floats{7, 5, 7, 5});
  backward(sum(x * 2.0));
  CHECK(grad_of(x).to_host() == Floats{2, 2, 2, 2});
}

TEST_CASE("in place: the result of a recorded op may not be changed, nor what a gradient still reads") {
  const Tensor x = leaf(Tensor::from({1, 2}));
  const Tensor y = x * x;
  CHECK_THROWS_WITH(fill_(y, 0), containing("result of multiply"));
  CHECK_THROWS_WITH(copy_(x, Tensor::zeros(Shape{3})), containing("[3]"));
  fill_(x, 5);
  CHECK_THROWS_WITH(backward(sum(y)), containing("multiply"));
}

TEST_CASE("in place: each change of what an op has read is found before its gradient is wrong") {
  const DefaultDevice device(any_device());
  const Tensor y = Tensor::from({3, 4});
  const std::vector<std::function<void(const Tensor&)>> changes{
      [&](const Tensor& x) { copy_(x, y); },
      [](const Tensor& x) { fill_(x, 2); },
      [&](const Tensor& x) { add_(x, y, 0.5); },
      [](const Tensor& x) { scale_(x, 2); },
      [](const Tensor& x) { fill_(x.detach(), 2); },
      [](const Tensor& x) { fill_(view::slice(x, 0, 0, 1), 2); },
      [](const Tensor& x) {
        Rng rng(1);
        fill_uniform(x, 0, 1, rng);
      },
      [](const Tensor& x) {
        Rng rng(1);
        fill_normal(x, 0, 1, rng);
      }};
  Rng rng(1);
  const Tensor gaps = view::slice(Tensor::zeros(Shape{2, 3}), 1, 0, 1);
  CHECK_THROWS_WITH(fill_uniform(gaps, 0, 1, rng), containing("fill_uniform: x [2, 1] is a view with gaps"));
  CHECK_THROWS_WITH(fill_normal(gaps, 0, 1, rng), containing("fill_normal: x [2, 1] is a view with gaps"));
  for (const auto& change : changes) {
    const Tensor x = leaf(Tensor::from({1, 2}));
    const Tensor kept = sum(square(x));
    change(x);
    CHECK_THROWS_WITH(backward(kept), containing("a tensor that square has read or made was overwritten"));
    CHECK_FALSE(grad_of(x));
    backward(sum(square(x)));  // what is computed after the change is right
    CHECK(grad_of(x).to_host() == (x.detach() * 2.0).to_host());
  }
}

}  // namespace
}  // namespace heed
