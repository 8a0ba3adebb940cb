// Tests unstack() of autograd/ops.h: steps of a sequence and their shared gradient.
#include "heed/autograd/gradcheck.h"
#include "heed/autograd/ops.h"
#include "heed/tests/catch.h"

namespace heed {

TEST_CASE("unstack: parts are the rows of the first axis, on views too") {
  const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Tensor x = Tensor::of<float>(values, Shape{2, 3, 2});
  const std::vector<Tensor> parts = unstack(x);
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].shape() == Shape{3, 2});
  CHECK(parts[1].to_host() == std::vector<float>{6, 7, 8, 9, 10, 11});
  CHECK_FALSE(parts[0].node());
  const std::vector<Tensor> turned = unstack(view::transpose(x, 0, 2));
  REQUIRE(turned.size() == 2);
  CHECK(turned[1].shape() == Shape{3, 2});
  CHECK(turned[1].to_host() == std::vector<float>{1, 7, 3, 9, 5, 11});
  CHECK(unstack(Tensor(Shape{0, 3})).empty());
  CHECK_THROWS_WITH(unstack(Tensor(Shape{})), containing("at least one axis"));
}

TEST_CASE("unstack: every part's gradient arrives, used often, once or never, whatever else x is used for") {
  const Tensor x = leaf(Tensor::full(Shape{3, 2}, 1));
  const Tensor twice = x * 2;
  const std::vector<Tensor> parts = unstack(twice);
  // The last part is not used; the first twice; x and what is taken apart have other users as well.
  backward(sum(parts[0] * 3 + parts[0] * 4) + sum(parts[1] * 5) + sum(twice) * 10 + sum(x) * 100);
  CHECK(grad_of(x).to_host() == std::vector<float>{134, 134, 130, 130, 120, 120});
}

TEST_CASE("unstack: the gradient of a loop over steps is that of central differences") {
  const auto loop = [](std::span<const Tensor> x) {
    Tensor state = x[1];
    std::vector<Tensor> all;
    for (const Tensor& step : unstack(x[0])) {
      state = tanh(step * state + step);
      all.push_back(state);
    }
    return concat(all, 0);
  };
  const Tensor sequence(Shape{4, 2, 3}, DType::f64), state(Shape{2, 3}, DType::f64);
  Rng rng(1);
  fill_normal(sequence, 0, 1, rng);
  fill_normal(state, 0, 1, rng);
  const GradcheckReport report = gradcheck(loop, {sequence, state});
  INFO(to_string(report));
  CHECK(report.repeats);
  CHECK(report.relative <= 1e-6);
}

}  // namespace heed
