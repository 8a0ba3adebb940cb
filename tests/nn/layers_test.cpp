// tests nn/init.h, nn/linear.h, nn/embedding.h, nn/norm.h, nn/feed_forward.h
#include <cmath>

#include "heed/autograd/gradcheck.h"
#include "heed/autograd/node.h"
#include "heed/nn/embedding.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/norm.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

struct Moments {
  double mean = 0, deviation = 0, least = HUGE_VAL, maximum = -HUGE_VAL;
  explicit Moments(const Tensor& x) {
    const auto values = x.to_doubles();
    for (const double v : values) {
      mean += v / static_cast<double>(values.size());
      least = std::min(least, v);
      maximum = std::max(maximum, v);
    }
    for (const double v : values) deviation += (v - mean) * (v - mean) / static_cast<double>(values.size());
    deviation = std::sqrt(deviation);
  }
};

}  // namespace

TEST_CASE("layers: parameters that are not drawn leave a generator as if they were") {
  Rng drawn(1), skipped(1);
  const Linear first(3, 4, drawn, {.init = Init::fan_in});
  {
    const SkipInit skips;
    CHECK(SkipInit::is_on());
    const Linear second(3, 4, skipped, {.init = Init::fan_in});
    CHECK(second.weight.shape() == Shape{4, 3});
  }
  CHECK_FALSE(SkipInit::is_on());
  CHECK(skipped.draws() == drawn.draws());
  CHECK(init_weight(4, 4, Init::normal, skipped).to_host() ==
        init_weight(4, 4, Init::normal, drawn).to_host());
}

TEST_CASE("init: xavier is uniform within sqrt(6 / (in + out))") {
  Rng rng(4);
  const double bound = std::sqrt(6.0 / 500);
  const Moments m(init_weight(200, 300, Init::xavier, rng));
  CHECK(m.mean == Approx(0).margin(3e-3));
  CHECK(m.deviation == Approx(bound / std::sqrt(3.0)).epsilon(0.02));
  CHECK(m.maximum <= bound);
  CHECK(m.maximum > 0.99 * bound);
  CHECK(m.least >= -bound);
  CHECK(m.least < -0.99 * bound);
  CHECK(Moments(init_weight(200, 300, Init::xavier, rng, 0.5)).maximum == Approx(0.5 * bound).epsilon(0.01));
}

TEST_CASE("init: normal has deviation 0.02 times the gain") {
  const DefaultDevice device(any_device());
  Rng rng(4);
  CHECK(Moments(init_weight(300, 200, Init::normal, rng)).deviation == Approx(0.02).epsilon(0.02));
  CHECK(Moments(init_weight(300, 200, Init::normal, rng, 0.5)).deviation == Approx(0.01).epsilon(0.02));
  CHECK(Moments(normal_parameter(Shape{300, 200}, 3, rng)).deviation == Approx(3).epsilon(0.02));
  CHECK(constant_parameter(Shape{2}, 1.5).to_host() == std::vector<float>{1.5f, 1.5f});
}

TEST_CASE("init: leaves that differ, and are the same for the same seed") {
  const DefaultDevice device(any_device());
  Rng one(5), two(5), three(6);
  const Tensor a = init_weight(4, 4, Init::xavier, one), b = init_weight(4, 4, Init::xavier, one);
  CHECK(a.node()->leaf);
  CHECK(a.shape() == Shape{4, 4});
  CHECK(a.to_host() != b.to_host());
  CHECK(a.to_host() == init_weight(4, 4, Init::xavier, two).to_host());
  CHECK(a.to_host() != init_weight(4, 4, Init::xavier, three).to_host());
}

TEST_CASE("linear: x W^T + b, with the bias at zero at first") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Linear layer(2, 3, rng), bare(2, 3, rng, {.bias = false});
  CHECK(layer.bias.to_host() == std::vector<float>{0, 0, 0});
  CHECK_FALSE(bare.bias);
  CHECK(count_parameters(bare) == 6);
  layer.weight = leaf(Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{3, 2}));
  layer.bias = leaf(Tensor::from({10, 20, 30}));
  const Tensor y = layer(Tensor::from(std::vector<float>{1, 1, 2, 0}, Shape{1, 2, 2}));
  CHECK(y.shape() == Shape{1, 2, 3});
  CHECK(y.to_host() == std::vector<float>{13, 27, 41, 12, 26, 40});
  CHECK_THROWS_WITH(layer(Tensor::from({1, 2, 3})), containing("[3]") && containing("[3, 2]"));
}

TEST_CASE("linear: xavier_fan_in draws weights as xavier and biases as fan_in") {
  Rng one(4), two(4), three(4);
  const Linear both(200, 300, one, {.init = Init::xavier_fan_in}),
      fan_in(200, 300, three, {.init = Init::fan_in});
  CHECK(both.weight.to_host() == init_weight(300, 200, Init::xavier, two).to_host());
  const Moments bias(both.bias);
  CHECK(bias.maximum <= 1 / std::sqrt(200.0));
  CHECK(bias.deviation == Approx(1 / std::sqrt(600.0)).epsilon(0.1));
  CHECK(Moments(fan_in.bias).deviation == Approx(bias.deviation).epsilon(0.15));
}

TEST_CASE("linear: fan_in draws the bias, too, within 1 / sqrt(inputs)") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  const Linear layer(64, 4000, rng, {.init = Init::fan_in});
  double maximum = 0, squares = 0;
  for (const float value : layer.bias.to_host()) {
    maximum = std::max(maximum, std::abs(static_cast<double>(value)));
    squares += std::pow(value, 2) / 4000;
  }
  CHECK(maximum <= 0.125);
  CHECK(maximum > 0.12);
  CHECK(squares == Approx(0.125 * 0.125 / 3).epsilon(0.1));
}

TEST_CASE("layers: sizes, rates and epsilons that cannot be are refused with the legal ones") {
  Rng rng(1);
  CHECK_THROWS_WITH(Linear(0, 4, rng), containing("Linear: in = 0. It must be at least 1."));
  CHECK_THROWS_WITH(Linear(4, -1, rng), containing("Linear: out = -1. It must be at least 1."));
  CHECK_THROWS_WITH(Embedding(0, 4, Init::xavier, rng), containing("Embedding: vocabulary = 0. It must be"));
  CHECK_THROWS_WITH(Embedding(4, 0, Init::normal, rng), containing("Embedding: width = 0. It must be"));
  CHECK_THROWS_WITH(Embedding(4, 4, Init::normal, rng, -1), containing("Embedding: deviation = -1."));
  CHECK_THROWS_WITH(RMSNorm(4, -1),
                    containing("RMSNorm: epsilon = -1. It must be at least 0, such as 1e-5."));
  CHECK_THROWS_WITH(RMSNorm(0), containing("RMSNorm: width = 0."));
  CHECK_THROWS_WITH(LayerNorm(4, {.epsilon = -1}), containing("LayerNorm: epsilon = -1."));
  CHECK_THROWS_WITH(LayerNorm(4, {.epsilon = NAN}), containing("LayerNorm: epsilon = "));
  CHECK_THROWS_WITH(LayerNorm(0, {}), containing("LayerNorm: width = 0."));
  for (const double rate : {2.0, 1.0, -0.5})
    CHECK_THROWS_WITH(
        FeedForward(4, 4, {.dropout = rate}, rng),
        containing(text("FeedForward: dropout = ", rate, ". It must be at least 0 and below 1.")));
}

TEST_CASE("embedding: rows by id, and gradients back to them") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Embedding table(4, 2, Init::normal, rng);
  const auto rows = table.weight.to_host();
  const std::vector<int32_t> ids{3, 0, 3};
  const Tensor y = table(Tensor::of<int32_t>(ids, Shape{1, 3}));
  CHECK(y.shape() == Shape{1, 3, 2});
  CHECK(y.to_host() == std::vector<float>{rows[6], rows[7], rows[0], rows[1], rows[6], rows[7]});
  backward(sum(y));
  CHECK(grad_of(table.weight).to_host() == std::vector<float>{1, 1, 0, 0, 0, 0, 2, 2});
}

TEST_CASE("layer norm: both scales against the formula") {
  const DefaultDevice device(any_device());
  const std::vector<double> x{1, 2, 4, 9};
  const double mean = 4, squares = 9 + 4 + 0 + 25;
  for (const auto scale : {kernel::NormScale::variance, kernel::NormScale::deviation}) {
    LayerNorm norm(4, {.epsilon = 1e-3, .scale = scale});
    norm.gain = leaf(Tensor::from({1, 2, 3, 4}));
    norm.bias = leaf(Tensor::from({0, 0, 1, -1}));
    const double by =
        scale == kernel::NormScale::variance ? std::sqrt(squares / 4 + 1e-3) : std::sqrt(squares / 3) + 1e-3;
    const auto y = norm(Tensor::from({1, 2, 4, 9})).to_host();
    const double bias[] = {0, 0, 1, -1};
    for (size_t i = 0; i < 4; ++i)
      CHECK(y[i] == Approx(static_cast<double>(i + 1) * (x[i] - mean) / by + bias[i]).margin(1e-5));
  }
  LayerNorm bare(4, {.bias = false});
  CHECK_FALSE(bare.bias);
  CHECK(count_parameters(bare) == 4);
}

TEST_CASE("rms norm: against the formula, in double precision, with gradients, as module and as scale") {
  const std::vector<double> x{1, 2, 4, 9, -3, 0, 0.5, 1e-3}, gain{1, 2, 3, -4};
  RMSNorm norm(4, 1e-3);
  CHECK(count_parameters(norm) == 4);
  norm.gain = leaf(Tensor::of<double>(gain, Shape{4}));
  const Tensor input = leaf(Tensor::of<double>(x, Shape{2, 4}));
  const std::vector<double> y = norm(input).to_doubles();
  for (size_t row = 0; row < 2; ++row) {
    double squares = 0;
    for (size_t i = 0; i < 4; ++i) squares += x[4 * row + i] * x[4 * row + i];
    for (size_t i = 0; i < 4; ++i)
      CHECK(y[4 * row + i] ==
            Approx(gain[i] * x[4 * row + i] / std::sqrt(squares / 4 + 1e-3)).epsilon(1e-12));
  }
  const std::vector<Tensor> leaves{input, norm.gain};
  const Tensor weights = Tensor::of<double>(std::vector<double>{3, 1, -2, 1, 0.5, 2, 1, -1}, Shape{2, 4});
  CHECK(gradcheck([&] { return sum(norm(input) * weights); }, leaves, {}).passed);
  LayerNorm by_scale(4, {.bias = false, .epsilon = 1e-3, .scale = kernel::NormScale::rms});
  by_scale.gain = norm.gain;
  CHECK(by_scale(input).to_doubles() == y);
}

TEST_CASE("feed forward: a gate multiplies the hidden units") {
  for (const auto activation : {Activation::swiglu, Activation::geglu}) {
    Rng rng(2);
    FeedForward network(3, 5, {.activation = activation, .dropout = 0.5}, rng);
    CHECK(count_parameters(network) == 2 * (3 * 5 + 5) + 5 * 3 + 3);
    CHECK(parameters(network).back().name == "gate.bias");
    convert(network, DType::f64);
    for (const Named& named : parameters(network)) fill_normal(named.tensor->detach(), 0, 1, rng);
    const std::vector<double> x{1, -2, 0.5, 3, 1, -1};
    const Tensor input = leaf(Tensor::of<double>(x, Shape{2, 3}));
    const auto layer = [](const Linear& linear, const double* in) {
      std::vector<double> out = linear.bias.to_doubles();
      const std::vector<double> w = linear.weight.to_doubles();
      const size_t width = w.size() / out.size();
      for (size_t o = 0; o < out.size(); ++o) {
        for (size_t i = 0; i < width; ++i) out[o] += w[o * width + i] * in[i];
      }
      return out;
    };
    const std::vector<double> y = network(input, nullptr).to_doubles();
    for (size_t row = 0; row < 2; ++row) {
      std::vector<double> hidden = layer(network.up, x.data() + 3 * row);
      const std::vector<double> gates = layer(network.gate, x.data() + 3 * row);
      for (size_t i = 0; i < hidden.size(); ++i) {
        const double g = gates[i];
        hidden[i] *= activation == Activation::swiglu ? g / (1 + std::exp(-g))
                                                      : g * 0.5 * std::erfc(-g / std::sqrt(2.0));
      }
      const std::vector<double> expected = layer(network.down, hidden.data());
      for (size_t i = 0; i < 3; ++i) CHECK(y[3 * row + i] == Approx(expected[i]).epsilon(1e-10));
    }
    std::vector<Tensor> leaves{input};
    for (const Named& named : parameters(network)) leaves.push_back(*named.tensor);
    CHECK(gradcheck([&] { return sum(square(network(input, nullptr))); }, leaves, {}).passed);
    Rng noise(1);
    CHECK(network(input, &noise).to_doubles() != y);
    // A gate is drawn last, so that the other layers start as they do without one.
    Rng one(2), other(2);
    const FeedForward plain(3, 5, {}, one), gated(3, 5, {.activation = activation}, other);
    CHECK(plain.down.weight.to_host() == gated.down.weight.to_host());
    CHECK_FALSE(plain.gate.weight);
    CHECK(parameters(*std::make_unique<FeedForward>(
                         3, 5, FeedForward::Options{.activation = activation, .bias = false}, rng))
              .size() == 3);
  }
}

TEST_CASE("feed forward: down(activation(up(x))), and dropout only with noise") {
  Rng rng(2);
  FeedForward network(3, 5, {.activation = Activation::relu, .dropout = 0.5}, rng);
  CHECK(count_parameters(network) == 3 * 5 + 5 + 5 * 3 + 3);
  const Tensor x = Tensor::from(std::vector<float>{1, -2, 0.5f, 3, 1, -1}, Shape{2, 3});
  const Tensor expected = network.down(relu(network.up(x)));
  CHECK(network(x, nullptr).to_host() == expected.to_host());
  Rng noise(1);
  CHECK(network(x, &noise).to_host() != expected.to_host());
  CHECK(count_parameters(*std::make_unique<FeedForward>(3, 5, FeedForward::Options{.bias = false}, rng)) ==
        30);
}

TEST_CASE("feed forward: with the tanh form of GELU, one op has the bits of its parts") {
  const DefaultDevice device(any_device());
  Rng rng(2);
  FeedForward network(24, 40, {.activation = Activation::gelu_tanh, .dropout = 0.3}, rng);
  const std::vector<Tensor*> weights{&network.up.weight, &network.up.bias, &network.down.weight,
                                     &network.down.bias};
  Tensor numbers(Shape{7, 24});
  fill_normal(numbers, 0, 1, rng);
  for (const bool noisy : {false, true}) {
    std::vector<std::vector<float>> found[2];
    for (const bool parts : {false, true}) {
      Rng noise(4);
      Rng* from = noisy ? &noise : nullptr;
      for (Tensor* w : weights) *w = leaf(*w);
      const Tensor x = leaf(numbers);
      const Tensor y = parts ? network.down(dropout(gelu_tanh(network.up(x)), 0.3, from)) : network(x, from);
      backward(sum(square(y)));
      found[parts].push_back(y.to_host());
      found[parts].push_back(grad_of(x).to_host());
      for (Tensor* w : weights) found[parts].push_back(grad_of(*w).to_host());
    }
    // On a device the slope is an epilogue of the product, which computes in another order.
    REQUIRE(found[0].size() == found[1].size());
    for (size_t i = 0; i < found[0].size(); ++i) {
      if (default_device == Device::cpu) CHECK(found[0][i] == found[1][i]);
      CHECK_THAT(found[0][i], Catch::Matchers::Approx(found[1][i]).epsilon(1e-4).margin(1e-4));
    }
  }
}

TEST_CASE("feed forward: each activation is its function") {
  const DefaultDevice device(any_device());
  const Tensor x = Tensor::from({-1, 0, 2});
  const auto at = [&](Activation activation) { return activate(activation, x).to_host(); };
  CHECK(at(Activation::relu) == std::vector<float>{0, 0, 2});
  CHECK(at(Activation::gelu)[2] == Approx(2 * 0.5 * std::erfc(-std::sqrt(2.0))));
  CHECK(at(Activation::gelu_tanh)[2] == Approx(1 + std::tanh(std::sqrt(2 / M_PI) * (2 + 0.044715 * 8))));
  CHECK(at(Activation::silu)[0] == Approx(-1 / (1 + std::exp(1.0))));
}

}  // namespace heed
