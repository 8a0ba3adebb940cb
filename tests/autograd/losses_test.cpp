// Tests autograd/losses.h: values in plain loops, gradients by central differences. PyTorch judges them in
// tests/peers.
#include "heed/autograd/losses.h"

#include <cmath>

#include "heed/autograd/gradcheck.h"
#include "heed/core/random.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Catch::Matchers::WithinAbs;
using Function = std::function<Tensor(std::span<const Tensor>)>;

Tensor normal(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64);
  fill_normal(x, 0, 1, rng);
  return x;
}

void check_gradients(const Function& loss, const std::vector<Tensor>& inputs) {
  const GradcheckReport report = gradcheck(loss, inputs);
  INFO(to_string(report));
  CHECK(report.relative <= 1e-6);
}

TEST_CASE("losses: mean squared error in three reductions") {
  const DefaultDevice device(any_device());
  const Tensor x = Tensor::from({1, 2, 3, 5}, Shape{2, 2}),
               target = expand(Tensor::from({1, 1}), Shape{2, 2});
  CHECK(mse_loss(x, target).item() == 5.25);
  CHECK(mse_loss(x, target, Reduction::sum).item() == 21);
  CHECK(mse_loss(x, target, Reduction::none).to_host() == std::vector<float>{0, 1, 4, 16});
  check_gradients([](auto in) { return mse_loss(in[0], in[1]); }, {normal({3, 4}, 1), normal({3, 4}, 2)});
}

TEST_CASE("losses: targets of another shape are refused, also where they would broadcast") {
  const Tensor x = Tensor::zeros(Shape{32, 1}), target = Tensor::zeros(Shape{32});
  CHECK_THROWS_WITH(mse_loss(x, target), containing("mse_loss: x is [32, 1] and its target [32]. Both must "
                                                    "have one shape: reshape() or expand() the target."));
  CHECK_THROWS_WITH(binary_cross_entropy_with_logits(target, x),
                    containing("binary_cross_entropy_with_logits: x is [32] and its target [32, 1]."));
  CHECK_THROWS_WITH(kl_divergence(x, Tensor::zeros(Shape{1})), containing("kl_divergence: x is [32, 1]"));
  CHECK(mse_loss(x, reshape(target, x.shape())).item() == 0);
}

TEST_CASE("losses: binary cross entropy of logits, weighted, and finite for huge ones") {
  const DefaultDevice device(any_device());
  const Tensor x = normal({50}, 1), target = sigmoid(normal({50}, 2));
  double expected = 0;
  for (int i = 0; i < 50; ++i) {
    const double p = 1 / (1 + std::exp(-x[i].item())), t = target[i].item();
    expected -= (3 * t * std::log(p) + (1 - t) * std::log(1 - p)) / 50;
  }
  CHECK_THAT(binary_cross_entropy_with_logits(x, target, Reduction::mean, 3).item(),
             WithinAbs(expected, 1e-12));
  const Tensor huge = Tensor::from({1000, -1000}), labels = Tensor::from({0, 1});
  CHECK(binary_cross_entropy_with_logits(huge, labels).item() == 1000);
  check_gradients([](auto in) { return binary_cross_entropy_with_logits(in[0], in[1], Reduction::sum, 2); },
                  {x, target});
}

TEST_CASE("losses: KL divergence, 0 for equal rows and where the target is 0") {
  const DefaultDevice device(any_device());
  const Tensor logits = normal({4, 5}, 1), target = softmax(normal({4, 5}, 2));
  CHECK_THAT(kl_divergence(log_softmax(logits), softmax(logits)).item(), WithinAbs(0, 1e-12));
  const Tensor sure = Tensor::from({0, 1}, Shape{1, 2});
  CHECK(kl_divergence(log(Tensor::from({0.5, 0.5}, Shape{1, 2})), sure).item() == std::log(2.0f));
  check_gradients([](auto in) { return kl_divergence(log_softmax(in[0]), in[1]); }, {logits, target});
}

TEST_CASE("losses: cross entropy of each target has the mean of cross_entropy(), and 0 where ignored") {
  const DefaultDevice device(any_device());
  const Tensor logits = normal({2, 3, 7}, 1);
  for (const int32_t ignore : {-1, -100, 6}) {
    const Tensor targets = Tensor::of<int32_t>(std::vector<int32_t>{0, ignore, 5, 2, 2, ignore}, Shape{2, 3});
    const Tensor each = cross_entropy_of_each(logits, targets, 0.1, ignore);
    CHECK((each.shape() == Shape{2, 3} && each[0][1].item() == 0 && each[1][2].item() == 0));
    CHECK_THAT(sum(each).item() / 4, WithinAbs(cross_entropy(logits, targets, 0.1, ignore).item(), 1e-12));
    check_gradients([&](auto in) { return cross_entropy_of_each(in[0], targets, 0.1, ignore); }, {logits});
  }
}

TEST_CASE("losses: a focal loss is composed of them") {
  // Lin et al. 2017, arXiv 1708.02002: (1 - p)^2 times the cross entropy.
  const DefaultDevice device(any_device());
  const Tensor logits = normal({6, 3}, 1);
  const Tensor targets = Tensor::of<int32_t>(std::vector<int32_t>{0, 1, 2, 0, 1, 2}, Shape{6});
  check_gradients(
      [&](auto in) {
        const Tensor each = cross_entropy_of_each(in[0], targets);
        return mean(pow(1.0 - exp(-each), 2) * each);
      },
      {logits});
}

}  // namespace
}  // namespace heed
