// What Optimizer::step() refuses or warns of in a training loop of one's own.
#include "heed/train/optim/step_checks.h"

#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/nn/linear.h"
#include "heed/tests/catch.h"
#include "heed/tests/standard_error.h"
#include "heed/train/optim/optimizer.h"

using namespace heed;

namespace {

struct Checked final : Module {
  Checked() : rng(1), used(2, 2, rng), idle(2, 1, rng), unlisted(leaf(Tensor::from({1, 2}))) {}
  Tensor loss(double p = 0, Rng* noise = nullptr) const {
    return mean(dropout(used(Tensor::full(Shape{3, 2}, 1)), p, noise));
  }
  void fields(Fields& f) override {
    f("used", used);
    f("idle", idle);
  }
  Rng rng;
  Linear used, idle;
  Tensor unlisted;  // a parameter that fields() forgets
};

/// What `steps` steps with this loss print.
std::string words_of(int steps, const std::function<Tensor(Checked&)>& loss) {
  Checked model;
  Optimizer optimizer(model, {});
  return errors_of([&] {
    for (int i = 0; i < steps; ++i) {
      backward(loss(model));
      optimizer.step(0.01);
    }
  });
}

}  // namespace

TEST_CASE("step checks: gradients that are not finite are refused by name before anything changes") {
  Checked model;
  Optimizer optimizer(model, {.grad_clip = 1, .grad_clip_value = 1});
  backward(model.loss());
  optimizer.step(0.01);
  const std::vector<double> values = optimizer.values().to_doubles();
  const std::string moments = optimizer.save();
  for (const double factor : {std::nan(""), HUGE_VAL}) {
    backward(model.loss() * factor);
    CHECK(fault_of([&] {
            try {
              optimizer.step(0.02);
            } catch (const Error& error) {
              CHECK_THAT(
                  error.what(),
                  containing("optimizer: step 2 is not finite: first bad value in used.weight (") &&
                      containing("its gradient, 4 of 4 values, shape [2, 2]. No parameter was changed. "
                                 "Lower the learning rate (now 0.02)") &&
                      containing("OptimizerOptions::on_nan = OnNan::skip."));
              throw;
            }
          }) == Fault::numeric);
    CHECK(optimizer.values().to_doubles() == values);
    CHECK((optimizer.save() == moments));
  }
  backward(model.loss());
  const Tensor bad_loss = Tensor::full(Shape{}, std::nan(""));
  CHECK_THROWS_WITH(optimizer.step(0.01, std::vector{bad_loss}), containing("the loss, or the norm"));
  backward(model.loss());
  optimizer.step(0.01);  // the gradients of the refused steps are gone
  CHECK(std::isfinite(optimizer.gradient_norm()));
  CHECK(optimizer.steps() == 2);
}

TEST_CASE("step checks: a parameter that was replaced after the optimizer was made is refused") {
  Checked model;
  Optimizer optimizer(model, {});
  backward(model.loss());
  optimizer.step(0.01);
  model.used.weight = leaf(Tensor::zeros(Shape{2, 2}));
  backward(model.loss());
  CHECK_THROWS_WITH(optimizer.step(0.01), containing("optimizer: the parameter used.weight was replaced"));
}

TEST_CASE("step checks: a module that names two parameters alike has no optimizer") {
  struct Twice final : Module {
    explicit Twice(Rng& rng) : a(1, 1, rng), b(2, 1, rng) {}
    void fields(Fields& f) override {
      f("layer", a);
      f("layer", b);
    }
    Linear a, b;
  };
  Rng rng(1);
  Twice module(rng);
  CHECK_THROWS_WITH(Optimizer(module, {}), containing("model: fields() names two tensors layer.weight"));
}

TEST_CASE("step checks: a step or load() between forward and backward pass is found") {
  Checked model;
  Optimizer optimizer(model, {});
  const std::string weights = save_bytes(model);
  backward(model.loss());
  const Tensor early = model.loss() * sum(square(model.used.weight));
  optimizer.step(0.01);
  CHECK_THROWS_WITH(backward(early), containing("was overwritten before its gradient was taken"));
  const Tensor loss = sum(square(model.used.weight));
  load_bytes(model, weights);
  CHECK_THROWS_WITH(backward(loss), containing("was overwritten before its gradient was taken"));
}

TEST_CASE("step checks: dropout without random numbers is warned of once, where the loss depends on it") {
  Rng noise(1);
  CHECK(words_of(3, [&](Checked& m) { return m.loss(0.1, &noise); }).empty());
  CHECK(words_of(3, [&](Checked& m) {
          const NoGrad no_grad;
          m.loss(0.1);
          const EnableGrad enable;
          m.loss(0.2);  // no loss depends on it
          return m.loss();
        }).empty());
  {  // gradients in evaluation, as of inputs, are no step: before there is an optimizer, or cleared
    Checked model;
    backward(model.loss(0.1));
    Optimizer optimizer(model, {});
    CHECK(errors_of([&] {
            for (int i = 0; i < 3; ++i) {
              backward(model.loss(0.1));
              optimizer.clear();
              backward(model.loss(0.1, &noise));
              optimizer.step(0.01);
            }
          }).empty());
  }
  const std::string words = words_of(3, [](Checked& m) { return m.loss(0.1); });
  const std::string warning = "optimizer: the forward pass of this step left out dropout = 0.1, since ";
  CHECK_THAT(words, containing(warning));
  CHECK(words.find(warning) == words.rfind(warning));
  // Ops that are fused with dropout tell it of the same result.
  const Tensor x = Tensor::full(Shape{3, 2}, 1);
  const std::function<Tensor(Checked&)> fused[] = {
      [&](Checked& m) { return mean(add_dropout(x, m.used(x), 0.1, nullptr)); },
      [&](Checked& m) {
        const Tensor gain = Tensor::full(Shape{2}, 1);
        return mean(square(add_dropout_norm(x, m.used(x), 0.1, nullptr, {}, gain, {}).normalised));
      },
      [&](Checked& m) { return mean(silu_dropout(m.used(x), 0.1, nullptr)); }};
  for (const auto& loss : fused) CHECK_THAT(words_of(3, loss), containing(warning));
}

TEST_CASE("step checks: parameters that no gradient reaches are warned of") {
  CHECK(words_of(9, [](Checked& m) { return m.loss(); }).empty());
  CHECK_THAT(words_of(20, [](Checked& m) { return m.loss(); }),
             containing("optimizer: no gradient has reached idle.weight [1, 2] and 1 more in 10 steps.\n"));
  int64_t step = 0;
  CHECK(words_of(20, [&](Checked& m) {
          return ++step == 5 ? mean(m.idle(Tensor::full(Shape{1, 2}, 1))) : m.loss();
        }).empty());
  Checked model;
  Optimizer optimizer(model, {});
  CHECK_THAT(errors_of([&] { optimizer.step(0.01); }),
             containing("no parameter has a gradient at the first step"));
}

TEST_CASE("step checks: a leaf that is trained by nobody is warned of, but not an input of one step") {
  const std::string words = words_of(3, [](Checked& m) { return m.loss() + sum(square(m.unlisted)); });
  CHECK_THAT(words,
             containing("optimizer: a leaf [2], read by square, gets gradients and belongs to no optimizer"));
  CHECK(words_of(3, [](Checked& m) {
          const Tensor input = leaf(Tensor::full(Shape{1, 2}, 1));
          return mean(m.used(input));
        }).empty());
  Checked other;
  std::unique_ptr<Optimizer> second;  // a parameter of another optimizer is trained
  CHECK(words_of(3, [&](Checked& m) {
          if (!second) second = std::make_unique<Optimizer>(other, OptimizerOptions{});
          return m.loss() + other.loss();
        }).empty());
}

TEST_CASE("step checks: options, rates and steps that make no sense are refused") {
  Checked model;
  const auto refused = [&](const OptimizerOptions& options, const char* words) {
    CHECK_THROWS_WITH(Optimizer(model, options), containing(words));
  };
  refused({.beta1 = 1}, "optimizer: beta1 = 1. It must be at least 0 and below 1.");
  refused({.beta2 = 1.1}, "beta2 = 1.1");
  refused({.epsilon = 0}, "epsilon = 0. It must be above 0");
  refused({.momentum = -1}, "momentum = -1");
  refused({.weight_decay = -1}, "weight_decay = -1");
  refused({.grad_clip = -1}, "grad_clip = -1");
  refused({.grad_clip_value = NAN}, "grad_clip_value = nan");
  refused({.ema = 2}, "ema = 2");
  Optimizer optimizer(model, {.ema = 0.9});
  backward(model.loss());
  const std::vector<float> before = model.used.weight.to_host();
  CHECK_THROWS_WITH(optimizer.step(-0.1), containing("step 1 has the learning rate -0.1"));
  CHECK_THROWS_WITH(optimizer.step(NAN), containing("the learning rate nan"));
  {
    const AveragedWeights average(optimizer);
    CHECK_THROWS_WITH(optimizer.step(0.1), containing("while an AveragedWeights lives"));
  }
  CHECK((model.used.weight.to_host() == before));
  optimizer.step(0.1);
  CHECK((model.used.weight.to_host() != before));
}

TEST_CASE("step checks: a model whose tensors are all frozen is called so") {
  Checked model;
  CHECK_THROWS_WITH(Optimizer(model, {.groups = {{.match = "*", .frozen = true}}}),
                    containing("All of its 4 tensors are frozen."));
}
