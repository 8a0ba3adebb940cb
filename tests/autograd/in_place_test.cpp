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

}  // namespace
}  // namespace heed
