// tests nn/recurrent.h
#include "heed/nn/recurrent.h"

#include "heed/autograd/gradcheck.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/sequences.h"

namespace heed {
namespace {

using test::apart;
using test::lengths;
using test::normal;

/// A cell of ops that do one thing each, on one sequence x [T, in] -> h of each step [T, width].
Tensor composed(const RecurrentCell& cell, CellKind kind, const Tensor& x, Direction direction) {
  const int64_t steps = x.extent(0), d = cell.width();
  Tensor h = Tensor::zeros(Shape{1, d}, x.dtype()), c = h;
  std::vector<Tensor> out(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = direction == Direction::forward ? i : steps - 1 - i;
    const Tensor a = linear(slice(x, 0, t, t + 1), cell.input.weight, cell.input.bias);
    const Tensor b = linear(h, cell.inner.weight, cell.inner.bias);
    const auto gate = [&](const Tensor& of, int64_t which) {
      return slice(of, 1, which * d, (which + 1) * d);
    };
    if (kind == CellKind::lstm) {
      const Tensor all = a + b;
      c = sigmoid(gate(all, 1)) * c + sigmoid(gate(all, 0)) * tanh(gate(all, 2));
      h = sigmoid(gate(all, 3)) * tanh(c);
    } else {
      const Tensor r = sigmoid(gate(a, 0) + gate(b, 0)), z = sigmoid(gate(a, 1) + gate(b, 1));
      const Tensor n = tanh(gate(a, 2) + r * gate(b, 2));
      h = n - z * n + z * h;
    }
    out[static_cast<size_t>(t)] = h;
  }
  return concat(out, 0);
}

/// All layers and directions on one sequence [T, in] -> [T, width].
Tensor composed(const Recurrent& layers, CellKind kind, const Tensor& x) {
  Tensor y = x;
  for (size_t i = 0; i < layers.forward.size(); ++i) {
    const Tensor back = composed(*layers.forward[i], kind, y, Direction::forward);
    y = layers.backward.empty()
            ? back
            : concat(std::vector<Tensor>{back, composed(*layers.backward[i], kind, y, Direction::backward)},
                     1);
  }
  return y;
}

struct Made {
  CellKind kind;
  int64_t layers;
  bool bidirectional;
};

std::vector<Made> all_made() {
  return {{CellKind::lstm, 1, false},
          {CellKind::gru, 1, false},
          {CellKind::lstm, 2, true},
          {CellKind::gru, 2, true}};
}

Recurrent make(const Made& made, int64_t in, int64_t width) {
  Rng rng(3);
  Recurrent layers(in, width, {.cell = made.kind, .layers = made.layers, .bidirectional = made.bidirectional},
                   rng);
  for (const Named& named : parameters(layers)) fill_normal(*named.tensor, 0, 0.5, rng);  // biases too
  convert(layers, DType::f64);
  return layers;
}

}  // namespace

TEST_CASE("recurrent: layers and directions are those of plain ops, each sequence from its own end") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  for (const Made& made : all_made()) {
    CAPTURE(static_cast<int>(made.kind), made.layers, made.bidirectional);
    const Recurrent layers = make(made, 5, 6);
    const Tensor x = normal(Shape{3, 7, 5}, 1);
    const std::vector<int32_t> long_as{7, 4, 1};
    const Tensor y = layers(x, lengths(long_as), nullptr);
    REQUIRE(y.shape() == Shape{3, 7, 6});
    const Tensor last = layers.last(y);
    REQUIRE(last.shape() == Shape{3, 6});
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t length = long_as[static_cast<size_t>(b)];
      const Tensor own = reshape(slice(slice(x, 0, b, b + 1), 1, 0, length), Shape{length, 5});
      const Tensor expected = composed(layers, made.kind, own);
      const Tensor found = reshape(slice(slice(y, 0, b, b + 1), 1, 0, length), Shape{length, 6});
      CHECK(apart(found, expected) < 1e-12);
      const int64_t half = made.bidirectional ? 3 : 6;
      const Tensor ended = slice(slice(expected, 0, length - 1, length), 1, 0, half);
      CHECK(apart(slice(slice(last, 0, b, b + 1), 1, 0, half), ended) < 1e-12);
      if (made.bidirectional) {
        const Tensor begun = slice(slice(expected, 0, 0, 1), 1, 3, 6);
        CHECK(apart(slice(slice(last, 0, b, b + 1), 1, 3, 6), begun) < 1e-12);
      }
    }
    CHECK(apart(layers(x, {}, nullptr), layers(x, lengths({7, 7, 7}), nullptr)) == 0);
  }
}

TEST_CASE("recurrent: what stands past an end changes no state and gets no gradient") {
  const DefaultDevice device(any_device());
  for (const Made& made : all_made()) {
    const Recurrent layers = make(made, 3, 4);
    const Tensor long_as = lengths({2, 5});
    const Tensor clean = leaf(normal(Shape{2, 5, 3}, 1));
    std::vector<double> values = clean.to_doubles();
    for (size_t i = 6; i < 15; ++i) values[i] = 1e6;
    const Tensor dirty = Tensor::of<double>(values, clean.shape());
    CHECK(apart(layers(clean, long_as, nullptr), layers(dirty, long_as, nullptr)) == 0);
    backward(sum(square(layers(clean, long_as, nullptr))));
    const std::vector<double> slopes = grad_of(clean).to_doubles();
    for (size_t i = 6; i < 15; ++i) CHECK(slopes[i] == 0);
    CHECK(slopes[0] != 0);
    CHECK(slopes[29] != 0);
  }
}

TEST_CASE("recurrent: gradients of inputs and parameters are those of central differences") {
  const DefaultDevice device(any_device());
  for (const Made& made : all_made()) {
    Recurrent layers = make(made, 3, 4);
    const Tensor x = leaf(normal(Shape{2, 4, 3}, 1));
    std::vector<Tensor> leaves{x};
    for (const Named& named : parameters(layers)) leaves.push_back(*named.tensor);
    check_listed(layers, sum(layers(x.detach(), {}, nullptr)));
    const GradcheckReport report = gradcheck(
        [&] {
          return layers(x, lengths({4, 2}), nullptr);
        },
        leaves, {.tolerance = 1e-6});
    INFO(to_string(report));
    CHECK(report.passed);
  }
}

TEST_CASE("recurrent: an LSTM begins with open forget gates, and sizes that do not fit are refused") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  const RecurrentCell cell(CellKind::lstm, 3, 2, rng);
  CHECK(cell.input.bias.to_host() == std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0});
  CHECK_THROWS_WITH(Recurrent(3, 5, {.bidirectional = true}, rng),
                    containing("width of 5 for two directions"));
  CHECK_THROWS_WITH(Recurrent(3, 4, {.layers = 0}, rng), containing("layers = 0"));
  const Recurrent layers(3, 4, {}, rng);
  CHECK_THROWS_WITH(layers(Tensor(Shape{2, 0, 3}), {}, nullptr), containing("without steps"));
}

TEST_CASE("recurrent: dropout lies between layers, and only with noise") {
  const DefaultDevice device(any_device());
  Rng rng(1), noise(2);
  const Tensor x = normal(Shape{2, 3, 4}, 5, DType::f32);
  const Recurrent one(4, 4, {.layers = 1, .dropout = 0.5}, rng),
      two(4, 4, {.layers = 2, .dropout = 0.5}, rng);
  CHECK(apart(one(x, {}, &noise), one(x, {}, nullptr)) == 0);
  CHECK(apart(two(x, {}, &noise), two(x, {}, nullptr)) > 0);
}

}  // namespace heed
