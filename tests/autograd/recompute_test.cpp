// Recomputation: bit-identical gradients with less memory.
#include "heed/autograd/recompute.h"

#include "heed/autograd/gradcheck.h"
#include "heed/autograd/ops.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Inputs = std::span<const Tensor>;

Tensor filled(const Shape& shape, uint64_t seed) {
  const Tensor x(shape);
  Rng rng(seed);
  fill_normal(x, 0, 0.3, rng);
  return x;
}

struct Block {
  Tensor weight = leaf(filled(Shape{8, 8}, 1)), gain = leaf(Tensor::full(Shape{8}, 1.5));

  /// Uses each input, and the weight twice.
  Tensor operator()(Inputs in, Rng* rng) const {
    const Tensor hidden = gelu(linear(in[0], weight, Tensor()));
    return layer_norm(dropout(linear(hidden, weight, Tensor()), 0.3, rng) + in[0] + in[1], gain, Tensor());
  }
};

struct Result {
  std::vector<double> loss, x, z, weight, gain;
  int64_t draws = 0;
  bool operator==(const Result&) const = default;
};

/// Three blocks that share parameters; `z` feeds each of them.
Result run(bool checkpointed) {
  const Block block;
  Rng rng(7);
  rng.advance();
  const Tensor x = leaf(filled(Shape{5, 8}, 2)), z = leaf(filled(Shape{8}, 3));
  Tensor y = x;
  const Tensor side = tanh(z);
  for (int i = 0; i < 3; ++i) {
    const auto f = [&](Inputs in) { return block(in, &rng); };
    const std::vector<Tensor> in = {y, side};
    y = checkpointed ? checkpoint(f, in, &rng) : f(in);
    y = dropout(y, 0.1, &rng) + side;
  }
  const Tensor loss = mean(square(y));
  backward(loss);
  return {loss.to_doubles(),
          grad_of(x).to_doubles(),
          grad_of(z).to_doubles(),
          grad_of(block.weight).to_doubles(),
          grad_of(block.gain).to_doubles(),
          rng.draws()};
}

TEST_CASE("checkpoint: loss, gradients and random draws are to the bit those without") {
  const int64_t before = live_nodes();
  CHECK(run(true) == run(false));
  CHECK(live_nodes() == before);
}

TEST_CASE("checkpoint: the gradient passes the check, and NoGrad records nothing") {
  const Tensor x = filled(Shape{3, 4}, 2), weight = filled(Shape{4, 4}, 1);
  const auto f = [](Inputs in) {
    return checkpoint(
        [](Inputs a) {
          Rng rng(5, a[0].device());
          return dropout(tanh(matmul(a[0], a[1])), 0.4, &rng) + a[0];
        },
        in);
  };
  require_gradients(f, {x, weight});
  const NoGrad no_grad;
  CHECK_FALSE(f(std::vector{leaf(x), leaf(weight)}).node());
}

TEST_CASE("checkpoint: a deep chain peaks lower") {
  const auto peak = [](bool checkpointed) {
    const int64_t start = memory_use().live;
    const Tensor x = leaf(Tensor::full(Shape{1 << 18}, 0.5));
    reset_peak();
    Tensor y = x;
    for (int segment = 0; segment < 8; ++segment) {
      const auto f = [](Inputs in) {
        Tensor h = in[0];
        for (int i = 0; i < 8; ++i) h = tanh(h);
        return h;
      };
      y = checkpointed ? checkpoint(f, std::span(&y, 1)) : f(std::span(&y, 1));
    }
    backward(sum(y));
    return memory_use().peak - start;
  };
  const int64_t plain = peak(false), less = peak(true);
  CHECK(plain > int64_t{64} << 20);
  CHECK(less < plain / 3);
}

TEST_CASE("checkpoint: leaves that only the function knows get gradients, and nested ones work") {
  const Tensor weight = leaf(filled(Shape{3}, 1));
  const Tensor x = filled(Shape{2, 3}, 2);  // wants no gradient
  const auto inner = [&](Inputs in) { return exp(in[0] * weight); };
  const auto outer = [&](Inputs in) { return square(checkpoint(inner, in)); };
  backward(sum(checkpoint(outer, std::span(&x, 1))));
  const std::vector<double> got = grad_of(weight).to_doubles();
  weight.node()->grad = Tensor();
  backward(sum(square(inner(std::span(&x, 1)))));
  CHECK(got == grad_of(weight).to_doubles());
}

TEST_CASE("checkpoint: a function that hands on its input, or a number") {
  const Tensor x = leaf(Tensor::from({1, 2}));
  backward(sum(checkpoint([](Inputs in) { return in[0]; }, std::span(&x, 1)) * 3.0));
  CHECK(grad_of(x).to_host() == std::vector<float>{3, 3});
  backward(sum(checkpoint([](Inputs in) { return in[0].detach(); }, std::span(&x, 1))));
  CHECK(grad_of(x).to_host() == std::vector<float>{3, 3});
}

TEST_CASE("recompute: a chain of a hundred thousand segments is destroyed without deep recursion") {
  const int64_t before = live_nodes();
  {
    Tensor y = leaf(Tensor::from({1}));
    for (int i = 0; i < 100'000; ++i) y = checkpoint([](Inputs in) { return in[0] * 1.0; }, std::span(&y, 1));
    CHECK(live_nodes() == before + 100'001);
  }
  CHECK(live_nodes() == before);
}

TEST_CASE("checkpoint: misuse is refused") {
  const Tensor x = leaf(Tensor::from({1, 2}));
  SECTION("a tensor with history that is not an input") {
    const Tensor hidden = square(x);
    const Tensor y = checkpoint([&](Inputs in) { return in[0] * hidden; }, std::span(&x, 1));
    CHECK_THROWS_WITH(backward(sum(y)), containing("backward of checkpoint") &&
                                            containing("the result [2] of square") &&
                                            containing("Pass it as an input"));
  }
  SECTION("a random source that has moved on") {
    Rng rng(1);
    const Tensor y = checkpoint([&](Inputs in) { return dropout(in[0], 0.5, &rng); }, std::span(&x, 1), &rng);
    rng.advance();
    CHECK_THROWS_WITH(backward(sum(y)), containing("Call advance() after backward()"));
  }
  SECTION("another shape at the second call") {
    int calls = 0;
    const Tensor y =
        checkpoint([&](Inputs in) { return ++calls == 1 ? in[0] : sum(in[0]); }, std::span(&x, 1));
    CHECK_THROWS_WITH(backward(sum(y)), containing("the function gave [2] at first and now []"));
  }
}

}  // namespace
}  // namespace heed
