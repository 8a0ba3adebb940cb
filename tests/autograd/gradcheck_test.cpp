// The gradient check accepts right gradients and finds wrong ones.
#include "heed/autograd/gradcheck.h"

#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Inputs = std::span<const Tensor>;

/// x^2 whose gradient is `factor` x.
Tensor squared(const Tensor& x, double factor) {
  return record("squared", square(x.detach()), {&x},
                [x = x.detach(), factor](const Tensor& dy) -> Gradients { return {dy * x * factor}; });
}

TEST_CASE("gradcheck: a right gradient passes, a wrong one is found") {
  const Tensor x = Tensor::from({0.5, -2, 3});
  CHECK(gradcheck([](Inputs in) { return squared(in[0], 2); }, {x}).passed);
  const GradcheckReport report = gradcheck([](Inputs in) { return squared(in[0], 2.00001); }, {x});
  CHECK_FALSE(report.passed);
  CHECK(report.checked == 3);
  CHECK(report.relative == Approx(5e-6).epsilon(0.01));
  CHECK_THROWS_WITH(require_gradients([](Inputs in) { return squared(in[0], 3); }, {x}),
                    containing("gradcheck: the gradient is wrong") && containing("of tensor 0 [3]") &&
                        containing("3 elements compared"));
  CHECK_NOTHROW(require_gradients([](Inputs in) { return squared(in[0], 2); }, {x}));
}

TEST_CASE("gradcheck: it says where the worst element is") {
  const auto wrong_in_one = [](Inputs in) {
    const Tensor x = in[2];
    return record("wrong", x.detach() * 1.0, {&x},
                  [](const Tensor& dy) -> Gradients {
                    std::vector<double> factors(6, 1.0);
                    factors[4] = -1;
                    return {dy * Tensor::of<double>(factors, Shape{2, 3})};
                  }) +
           in[0];
  };
  const std::vector<int32_t> ids = {7};
  const GradcheckReport report = gradcheck(
      wrong_in_one,
      {Tensor::full(Shape{3}, 1), Tensor::of<int32_t>(ids, Shape{1}), Tensor::full(Shape{2, 3}, 1)});
  CHECK_FALSE(report.passed);
  CHECK(report.input == 2);
  CHECK(report.element == 4);
  CHECK(report.shape == Shape{2, 3});
  CHECK(report.numeric > 0);
  CHECK(report.taped == Approx(-report.numeric));
  CHECK(report.checked == 9);
}

TEST_CASE("gradcheck: a missing gradient and a NaN are found") {
  const Tensor x = Tensor::from({0.5, 2});
  CHECK_FALSE(gradcheck([](Inputs in) { return square(in[0].detach()); }, {x}).passed);
  CHECK(gradcheck([](Inputs in) { return in[0].detach() * 0.0; }, {x}).passed);  // none, and rightly so
  const GradcheckReport report = gradcheck([](Inputs in) { return squared(in[0], NAN); }, {x});
  CHECK_FALSE(report.passed);
  CHECK(std::isinf(report.relative));
}

TEST_CASE("gradcheck: f32 inputs are checked in f64, views as dense, ids untouched") {
  const Tensor table = Tensor::full(Shape{4, 3}, 0.5);
  const std::vector<int32_t> ids = {3, 0, 3};
  const auto f = [](Inputs in) {
    CHECK(in[0].dtype() == DType::f64);
    CHECK(in[1].dtype() == DType::i32);
    return square(embedding(in[0], in[1]));
  };
  CHECK(gradcheck(f, {view::expand(Tensor::full(Shape{1, 3}, 0.5), Shape{4, 3}),
                      Tensor::of<int32_t>(ids, Shape{3})})
            .passed);
  CHECK(table.to_doubles() == std::vector<double>(12, 0.5));
}

TEST_CASE("gradcheck: leaves that live elsewhere are put back, their gradients cleared") {
  const std::vector<double> values = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  const Tensor block = Tensor::of<double>(values, Shape{2, 3});
  const std::vector<Tensor> leaves = {leaf(view::transpose(block, 0, 1)),
                                      leaf(Tensor::full(Shape{}, 0.7, DType::f64))};
  const uint64_t version = block.storage()->version;
  CHECK_NOTHROW(require_gradients([&] { return tanh(leaves[0] * leaves[1]); }, leaves));
  CHECK(block.to_doubles() == values);
  CHECK(block.storage()->version > version);
  CHECK_FALSE(grad_of(leaves[0]));
  CHECK_THROWS_WITH(require_gradients([&] { return squared(leaves[0], 1) * leaves[1]; }, leaves),
                    containing("of tensor 0 [3, 2]"));
  CHECK(block.to_doubles() == values);

  const Tensor arena = Tensor::zeros(Shape{1}, DType::f64);
  Node& node = *leaves[1].node();
  node.grad = arena.seen_as(Shape{}, Strides{}, 0);
  node.in_arena = node.fresh = true;
  CHECK(gradcheck([&] { return exp(leaves[1]); }, leaves).passed);
  CHECK(node.fresh);
}

TEST_CASE("gradcheck: a sample of a large input") {
  const Tensor x = Tensor::full(Shape{1000}, 0.5);
  const GradcheckReport report = gradcheck([](Inputs in) { return exp(in[0]); }, {x}, {.samples = 20});
  CHECK(report.passed);
  CHECK(report.checked == 20);
  CHECK_FALSE(gradcheck([](Inputs in) { return squared(in[0], 1); }, {x}, {.samples = 20}).passed);
}

TEST_CASE("gradcheck: what cannot be checked is refused") {
  const Tensor x = Tensor::from({1, 2});
  CHECK_THROWS_WITH(gradcheck([](Inputs in) { return cast(in[0], DType::f32); }, {x}),
                    containing("returns f32"));
  Rng rng(3);
  CHECK_THROWS_WITH(gradcheck([&](Inputs in) { return dropout(in[0], 0.5, &rng) * rng.uniform(); }, {x}),
                    containing("two calls of the function gave different results"));
  const std::vector<Tensor> plain = {Tensor::zeros(Shape{2}, DType::f64)}, narrow = {leaf(x)};
  CHECK_THROWS_WITH(gradcheck([&] { return plain[0]; }, plain), containing("is no leaf"));
  CHECK_THROWS_WITH(gradcheck([&] { return narrow[0]; }, narrow), containing("is f32. Differences need f64"));
  CHECK_FALSE(gradcheck([&] { return plain[0]; }, std::vector<Tensor>{}).passed);  // nothing was compared
}

TEST_CASE("gradcheck: a function that fails leaves the elements as they were") {
  const std::vector<double> values = {0.25, 0.5};
  const std::vector<Tensor> leaves = {leaf(Tensor::of<double>(values, Shape{2}))};
  int calls = 0;
  const auto f = [&] {
    if (++calls == 6) fail("enough");
    return exp(leaves[0]);
  };
  CHECK_THROWS_WITH(gradcheck(f, leaves), containing("enough"));
  CHECK(leaves[0].to_doubles() == values);
  CHECK_FALSE(grad_of(leaves[0]));
  CHECK(recording());
}

}  // namespace
}  // namespace heed
