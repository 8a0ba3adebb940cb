// Tests autograd/comparisons.h.
#include "heed/autograd/comparisons.h"

#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Doubles = std::vector<double>;

Tensor numbers(std::initializer_list<double> values, const Shape& shape, DType dtype = DType::f32) {
  return cast(Tensor::of<double>(std::vector<double>(values), shape), dtype);
}

TEST_CASE("comparisons: six relations in every type, broadcast, and NaN equals nothing") {
  const DefaultDevice device(any_device());
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
    INFO(to_string(dtype));
    const Tensor a = numbers({1, 2, 3}, Shape{3}, dtype), b = numbers({2, 3}, Shape{2, 1}, dtype);
    CHECK(equal(a, b).to_doubles() == Doubles{0, 1, 0, 0, 0, 1});
    CHECK(not_equal(a, b).to_doubles() == Doubles{1, 0, 1, 1, 1, 0});
    CHECK(less(a, b).to_doubles() == Doubles{1, 0, 0, 1, 1, 0});
    CHECK(less_equal(a, b).to_doubles() == Doubles{1, 1, 0, 1, 1, 1});
    CHECK(greater(a, b).to_doubles() == Doubles{0, 0, 1, 0, 0, 0});
    CHECK(greater_equal(a, b).to_doubles() == Doubles{0, 1, 1, 0, 0, 1});
    CHECK(less(a, 2).to_doubles() == Doubles{1, 0, 0});
    CHECK(less(a, b).dtype() == DType::u8);
  }
  const Tensor nan = numbers({NAN, 1}, Shape{2});
  CHECK(equal(nan, nan).to_doubles() == Doubles{0, 1});
  CHECK(not_equal(nan, nan).to_doubles() == Doubles{1, 0});
  CHECK(less_equal(nan, nan).to_doubles() == Doubles{0, 1});
  CHECK(greater_equal(nan, 0).to_doubles() == Doubles{0, 1});
  CHECK_THROWS_WITH(less(numbers({1}, Shape{1}), numbers({1}, Shape{1}, DType::i32)),
                    containing("less: f32"));
}

TEST_CASE("argmax: the first largest, along any axis, which goes") {
  const DefaultDevice device(any_device());
  const Tensor x = numbers({1, 5, 5, 7, 2, 7}, Shape{2, 3});
  CHECK(argmax(x, -1).to_doubles() == Doubles{1, 0});
  CHECK(argmax(x, 0).to_doubles() == Doubles{1, 0, 1});
  CHECK((argmax(x, 0).shape() == Shape{3} && argmax(x, 0).dtype() == DType::i32));
  CHECK_THROWS_WITH(argmax(Tensor::zeros(Shape{2, 0}), 1), containing("has no element"));
}

TEST_CASE("top_k: the largest first, equals in their order, NaN last, with a gradient") {
  const DefaultDevice device(any_device());
  const Tensor x = leaf(numbers({3, 9, 9, -INFINITY, 1, NAN, 2, 0}, Shape{2, 4}));
  const TopK top = top_k(x, 3);
  CHECK(top.indices.to_doubles() == Doubles{1, 2, 0, 2, 0, 3});
  CHECK(top.values.to_doubles() == Doubles{9, 9, 3, 2, 1, 0});
  backward(sum(top.values));
  CHECK(grad_of(x).to_doubles() == Doubles{1, 1, 1, 0, 1, 0, 1, 1});
  CHECK_THROWS_WITH(top_k(Tensor::zeros(Shape{2, 3}), 4), containing("k = 4"));
  CHECK_THROWS_WITH(top_k(Tensor::zeros(Shape{2, 3}), 0), containing("k = 0"));
}

TEST_CASE("one_hot: a 1 at each id, and zeros for an id outside") {
  const DefaultDevice device(any_device());
  const Tensor ids = Tensor::of<int32_t>(std::vector<int32_t>{2, 0, -1, 3}, Shape{2, 2});
  const Tensor y = one_hot(ids, 3, DType::f64);
  CHECK((y.shape() == Shape{2, 2, 3} && y.dtype() == DType::f64));
  CHECK(y.to_doubles() == Doubles{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK_THROWS_WITH(one_hot(Tensor::zeros(Shape{2}), 3), containing("must be i32"));
}

TEST_CASE("operators: x[i] and x += y are recorded, and change nothing in place") {
  const Tensor x = leaf(numbers({1, 2, 3, 4}, Shape{2, 2}));
  Tensor y = x[-1];
  CHECK(y.to_doubles() == Doubles{3, 4});
  const Tensor before = y;
  y += x[0];
  y *= 2.0;
  CHECK(y.to_doubles() == Doubles{8, 12});
  CHECK(before.to_doubles() == Doubles{3, 4});
  backward(sum(y));
  CHECK(grad_of(x).to_doubles() == Doubles{2, 2, 2, 2});
  CHECK_THROWS_WITH(x[2], containing("index 2"));
}

}  // namespace
}  // namespace heed
