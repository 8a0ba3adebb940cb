// linear_each(): several layers of one input in one product, and where the gradients of its results lie.
#include "heed/autograd/ops.h"
#include "heed/autograd/tape.h"
#include "heed/core/kernel_log.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Doubles = std::vector<double>;

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64, default_device);
  fill_normal(x, 0, 1, rng);
  return x;
}

/// Weights [out, in] and biases [out] of three layers, as an optimizer has them: values behind each other in
/// one tensor and gradients in another, with `gap` elements between two of them.
struct Layers {
  std::vector<int64_t> outs;
  int64_t in, gap;
  Tensor values = {}, gradients = {};
  std::vector<Tensor> weights = {}, biases = {};

  Layers(std::vector<int64_t> widths, int64_t inputs, int64_t space)
      : outs(std::move(widths)), in(inputs), gap(space) {
    int64_t size = 0;
    for (const int64_t out : outs) size += out * (in + 1) + 2 * gap;
    values = random(Shape{size}, 3);
    gradients = Tensor::full(Shape{size}, 99, DType::f64, default_device);
    int64_t at = 0;
    const auto next = [&](const Shape& shape) {
      const Strides strides = Strides::contiguous(shape);
      const Tensor x = leaf(values.seen_as(shape, strides, at));
      x.node()->grad = gradients.seen_as(shape, strides, at);
      x.node()->in_arena = x.node()->fresh = true;
      at += shape.size() + gap;
      return x;
    };
    for (const int64_t out : outs) weights.push_back(next(Shape{out, in}));
    for (const int64_t out : outs) biases.push_back(next(Shape{out}));
  }
  void forget() const {
    for (const auto* list : {&weights, &biases}) {
      for (const Tensor& x : *list) x.node()->fresh = true;
    }
  }
  std::vector<Tensor> one_by_one(const Tensor& x) const {
    std::vector<Tensor> y;
    for (size_t i = 0; i < outs.size(); ++i) y.push_back(linear(x, weights[i], biases[i]));
    return y;
  }
};

Tensor loss_of(const std::vector<Tensor>& y) { return sum(square(y[0]) * 0.5 + y[1] * y[1] * y[2]); }

void same(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Doubles x = a.to_doubles(), y = b.to_doubles();
  for (size_t i = 0; i < x.size(); ++i) CHECK(x[i] == Approx(y[i]).epsilon(1e-12).margin(1e-12));
}

int64_t count(const KernelLog& log, const std::string& kernel) {
  int64_t found = 0;
  for (const KernelCall& call : log.calls()) found += call.kernel == kernel ? 1 : 0;
  return found;
}

TEST_CASE("linear_each: results and gradients are those of the layers one by one, wherever weights lie") {
  const DefaultDevice device(any_device());
  for (const int64_t gap : {0, 3}) {
    const Layers layers({4, 4, 4}, 5, gap);
    const Tensor x = leaf(random(Shape{2, 7, 5}, 1));
    const auto run = [&](const auto& results) {
      layers.forget();
      x.node()->grad = Tensor();
      const std::vector<Tensor> y = results();
      backward(loss_of(y));
      std::vector<Tensor> out = y;
      out.push_back(grad_of(x));
      for (const auto* list : {&layers.weights, &layers.biases}) {
        for (const Tensor& p : *list) out.push_back(grad_of(p).to(Device::cpu));
      }
      for (Tensor& one : out) one = Tensor::of<double>(one.to_doubles(), one.shape());
      return out;
    };
    const auto expected = run([&] { return layers.one_by_one(x); });
    const auto found =
        run([&] { return linear_each(x, layers.weights, layers.biases, layers.weights[0].dtype()); });
    for (size_t i = 0; i < expected.size(); ++i) {
      INFO("gap " << gap << ", number " << i);
      same(found[i], expected[i]);
    }
    // A second pass adds to the gradients of the first.
    backward(loss_of(linear_each(x, layers.weights, layers.biases, layers.weights[0].dtype())));
    same(grad_of(layers.weights[1]), expected[5] * 2.0);
    same(grad_of(layers.biases[2]), expected[9] * 2.0);
  }
}

TEST_CASE("linear_each: layers of other widths, without biases, and a frozen one") {
  const DefaultDevice device(any_device());
  const Layers layers({6, 2, 2}, 3, 0);
  const Tensor x = leaf(random(Shape{5, 3}, 1));
  const std::vector<Tensor> none(3),
      weights{layers.weights[0], layers.weights[1].detach(), layers.weights[2]};
  const std::vector<Tensor> y = linear_each(x, weights, none, x.dtype());
  for (size_t i = 0; i < 3; ++i) same(y[i], linear(x, weights[i], {}));
  backward(sum(y[0] * y[0]) + sum(y[1] * y[2]));
  const Tensor first = grad_of(layers.weights[0]) * 1.0, last = grad_of(layers.weights[2]) * 1.0;
  const Tensor of_x = grad_of(x) * 1.0;
  CHECK_FALSE(grad_of(layers.weights[1]));
  layers.forget();
  x.node()->grad = Tensor();
  backward(sum(square(linear(x, weights[0], {}))) +
           sum(linear(x, weights[1], {}) * linear(x, weights[2], {})));
  same(first, grad_of(layers.weights[0]));
  same(last, grad_of(layers.weights[2]));
  same(of_x, grad_of(x));
}

TEST_CASE("linear_each: a result that is not used has a gradient of zeros") {
  const DefaultDevice device(any_device());
  const Layers layers({4, 4, 4}, 4, 0);
  const Tensor x = random(Shape{6, 4}, 1);
  backward(sum(linear_each(x, layers.weights, layers.biases, layers.weights[0].dtype())[1]));
  CHECK(grad_of(layers.weights[0]).to_doubles() == Doubles(16, 0));
  CHECK(grad_of(layers.biases[2]).to_doubles() == Doubles(4, 0));
  CHECK(grad_of(layers.biases[1]).to_doubles() == Doubles(4, 6));
}

TEST_CASE("linear_each: adjacent weights are read in place, and attention's gradients are not copied") {
  const DefaultDevice device(any_device());
  constexpr int64_t B = 2, T = 9, d = 4;
  for (const int64_t kv_heads : {2, 1}) {
    const Layers layers({2 * d, kv_heads * d, kv_heads * d}, 8, 0);
    const Tensor x = leaf(random(Shape{B, T, 8}, 1));
    const auto attended = [&](const std::vector<Tensor>& y) {
      const auto heads = [&](size_t i) { return transpose(reshape(y[i], Shape{B, T, -1, d}), 1, 2); };
      return attention(heads(0), heads(1), heads(2), {.scale = 0.5});
    };
    const Tensor dy = random(Shape{B, 2, T, d}, 9);
    backward(attended(layers.one_by_one(x)), dy);
    const Tensor expected = grad_of(x) * 1.0, of_weights = layers.gradients * 1.0;
    layers.forget();
    x.node()->grad = Tensor();
    const KernelLog log;
    const Tensor y = attended(linear_each(x, layers.weights, layers.biases, layers.weights[0].dtype()));
    CHECK(count(log, "Linear") == 1);
    CHECK(count(log, "Copy") == 0);
    backward(y, dy);
    CHECK(count(log, "Copy") == 0);
    CHECK(count(log, "Accumulate") == 0);
    CHECK(count(log, "LinearBack") == 1);
    CHECK(count(log, "LinearWeightBack") == 1);
    same(grad_of(x), expected);
    same(layers.gradients, of_weights);
  }
}

TEST_CASE("linear_each: gradients of polynomial attention are not copied either") {
  const DefaultDevice device(any_device());
  constexpr int64_t B = 2, T = 9, d = 4;
  const Layers layers({2 * d, 2 * d, 2 * d}, 8, 0);
  const Tensor x = leaf(random(Shape{B, T, 8}, 1)), dy = random(Shape{B, 2, T, d}, 9);
  for (const bool causal : {false, true}) {
    const auto attended = [&](const std::vector<Tensor>& y) {
      const auto heads = [&](size_t i) { return transpose(reshape(y[i], Shape{B, T, -1, d}), 1, 2); };
      return polynomial_attention(heads(0), heads(1), heads(2),
                                  {.coefficients = {1, 1, 0.5}, .causal = causal});
    };
    layers.forget();
    x.node()->grad = Tensor();
    backward(attended(layers.one_by_one(x)), dy);
    const Tensor expected = grad_of(x) * 1.0, of_weights = layers.gradients * 1.0;
    layers.forget();
    x.node()->grad = Tensor();
    const KernelLog log;
    backward(attended(linear_each(x, layers.weights, layers.biases, layers.weights[0].dtype())), dy);
    CHECK(count(log, "Copy") == 0);
    same(grad_of(x), expected);
    same(layers.gradients, of_weights);
  }
}

TEST_CASE("linear_each: a gradient that other ops hold too is not written into") {
  const DefaultDevice device(any_device());
  const Layers layers({4, 4, 4}, 5, 0);
  const Tensor x = leaf(random(Shape{7, 5}, 1)), other = leaf(random(Shape{7, 12}, 2));
  // The gradients of the parts are the columns of that of `joined`, which `other` gets as well; the last part
  // has one more use.
  const auto loss = [&](const std::vector<Tensor>& y) {
    const Tensor joined = concat(y, 1) + other;
    return sum(square(joined)) + sum(y[2] * y[0]);
  };
  backward(loss(layers.one_by_one(x)));
  const Tensor of_x = grad_of(x) * 1.0, of_other = grad_of(other) * 1.0;
  layers.forget();
  x.node()->grad = other.node()->grad = Tensor();
  backward(loss(linear_each(x, layers.weights, layers.biases, layers.weights[0].dtype())));
  same(grad_of(x), of_x);
  same(grad_of(other), of_other);
}

TEST_CASE("linear_each: what does not fit is refused") {
  const Tensor x = Tensor::zeros(Shape{2, 3}), w = Tensor::zeros(Shape{4, 3}), b = Tensor::zeros(Shape{4});
  CHECK_THROWS_WITH(linear_each(x, std::vector<Tensor>{w, w}, std::vector<Tensor>{b}, x.dtype()),
                    containing("linear_each: 2 weights and 1 biases."));
  CHECK_THROWS_WITH(linear_each(x, std::vector<Tensor>{w, w}, std::vector<Tensor>{b, Tensor()}, x.dtype()),
                    containing("weight 1 has no bias, weight 0 has one. Give all of them one, or none."));
  CHECK_THROWS_WITH(linear_each(x, std::vector<Tensor>{w, b}, std::vector<Tensor>(2), x.dtype()),
                    containing("linear_each: an input [2, 3] does not fit the weight [4]"));
}

}  // namespace
}  // namespace heed
