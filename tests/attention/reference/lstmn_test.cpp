// LSTMN against its equations in plain loops: outputs, maps, gradients by differences, and the LSTM as a
// limit.
#include "heed/tests/attention/reference/lstmn.h"

#include "heed/attention/variant.h"
#include "heed/nn/recurrent.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::LstmnParameters;
using reference::LstmnShape;
using reference::Matrix;

struct Made {
  LstmnShape shape;
  std::unique_ptr<Attention> attention;
  LstmnParameters parameters;
};

Made make(const std::string& spec, const LstmnShape& shape) {
  Rng rng(5);
  Made made{
      shape, make_attention(spec, {.d_model = shape.width, .heads = shape.heads, .causal = true}, rng), {}};
  for (const Named& named : parameters(*made.attention)) fill_normal(*named.tensor, 0, 0.8, rng);
  convert(*made.attention, DType::f64);
  for (const Named& named : parameters(*made.attention))
    made.parameters[named.name] = named.tensor->to_doubles();
  return made;
}

Tensor normal(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64);
  fill_normal(x, 0, 1, rng);
  return x;
}

Matrix sequence(const Tensor& x, int64_t b, int64_t length) {
  return {length, x.extent(2),
          contiguous(view::slice(view::slice(x.detach(), 0, b, b + 1), 1, 0, length)).to_doubles()};
}

double worst(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out = std::max(out, std::abs(a[i] - b[i]));
  return out;
}

struct Try {
  std::string spec;
  LstmnShape shape;
  int64_t length;
};

std::vector<Try> tries() {
  return {{"lstmn", {.width = 1, .heads = 1, .hidden = 1}, 1},
          {"lstmn", {.width = 1, .heads = 1, .hidden = 1}, 2},
          {"lstmn", {.width = 4, .heads = 1, .hidden = 4}, 17},
          {"lstmn", {.width = 6, .heads = 3, .hidden = 2}, 9},
          {"lstmn:hidden=5,bias=true", {.width = 4, .heads = 2, .hidden = 5}, 6},
          {"lstmn:use_prev_summary=false", {.width = 3, .heads = 1, .hidden = 3}, 6},
          {"lstmn:slots=2", {.width = 4, .heads = 2, .hidden = 2, .slots = 2}, 7}};
}

}  // namespace

TEST_CASE("reference: lstmn, with and without padding", "[lstmn]") {
  for (const Try& attempt : tries()) {
    CAPTURE(attempt.spec, attempt.length);
    const NoGrad quiet;
    const Made made = make(attempt.spec, attempt.shape);
    const int64_t T = attempt.length, W = attempt.shape.width;
    const Tensor x = normal(Shape{2, T, W}, 1);
    const std::vector<int32_t> lengths{static_cast<int32_t>(T), static_cast<int32_t>((T + 1) / 2)};
    for (const bool padded : {false, true}) {
      MapRecorder recorder;
      const Mask mask =
          padded ? Mask::causal() & Mask::lengths(Tensor::of<int32_t>(lengths, Shape{2})) : Mask::causal();
      const Tensor y = made.attention->forward(
          {.queries = x, .keys = x, .mask = mask, .context = {.recorder = &recorder}});
      REQUIRE(recorder.maps.size() == 1);
      const Tensor& map = recorder.maps[0].weights;
      REQUIRE(map.shape() == Shape{2, attempt.shape.heads, T, T});
      for (int64_t b = 0; b < 2; ++b) {
        const int64_t length = padded ? lengths[static_cast<size_t>(b)] : T;
        const auto expected = reference::lstmn(attempt.shape, made.parameters, sequence(x, b, length));
        CHECK(worst(sequence(y, b, length).values, expected.h.values) < 1e-12);
        for (int64_t h = 0; h < attempt.shape.heads; ++h) {
          const Tensor head = view::slice(view::slice(map, 0, b, b + 1), 1, h, h + 1);
          const Tensor real = contiguous(view::slice(view::slice(head, 2, 0, length), 3, 0, length));
          CHECK(worst(real.to_doubles(), expected.maps[static_cast<size_t>(h)].values) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("reference: gradients of lstmn are differences of its equations", "[lstmn]") {
  for (const Try& attempt : tries()) {
    CAPTURE(attempt.spec, attempt.length);
    const Made made = make(attempt.spec, attempt.shape);
    const int64_t T = attempt.length, W = attempt.shape.width;
    const Tensor x = leaf(normal(Shape{1, T, W}, 1)), direction = normal(Shape{1, T, W}, 2);
    backward(sum(made.attention->forward({.queries = x, .keys = x, .mask = Mask::causal()}) * direction));
    LstmnParameters values = made.parameters;
    values["x"] = x.to_doubles();
    const auto along = [&] {
      const Matrix input(T, W, values.at("x"));
      const auto run = reference::lstmn(attempt.shape, values, input);
      const std::vector<double> slope = direction.to_doubles();
      double total = 0;
      for (size_t i = 0; i < slope.size(); ++i) total += slope[i] * run.h.values[i];
      return total;
    };
    std::map<std::string, Tensor> found{{"x", grad_of(x)}};
    for (const Named& named : parameters(*made.attention)) found[named.name] = grad_of(*named.tensor);
    for (auto& [name, list] : values) {
      CAPTURE(name);
      REQUIRE(found.at(name));
      const std::vector<double> slopes = found.at(name).to_doubles();
      for (size_t i = 0; i < list.size(); ++i) {
        const double before = list[i], h = 1e-5;
        list[i] = before + h;
        const double high = along();
        list[i] = before - h;
        const double low = along();
        list[i] = before;
        CHECK(slopes[i] == Approx((high - low) / (2 * h)).epsilon(1e-6).margin(1e-8));
      }
    }
  }
}

TEST_CASE("lstmn: forced to look at the last slot it is an ordinary LSTM", "[lstmn]") {
  const NoGrad quiet;
  for (const int64_t heads : {1, 3}) {
    const Made made = make("lstmn:slots=1", {.width = 6, .heads = heads, .hidden = 6 / heads, .slots = 1});
    Rng rng(1);
    RecurrentCell plain(CellKind::lstm, 6, 6, rng);
    convert(plain, DType::f64);
    for (const Named& named : parameters(plain)) {
      const std::vector<double>& theirs = made.parameters.at("cell." + named.name);
      *named.tensor = Tensor::of<double>(theirs, named.tensor->shape());
    }
    const Tensor x = normal(Shape{2, 13, 6}, 3);
    Tensor state;
    const Tensor expected =
        transpose(plain.run(contiguous(transpose(x, 0, 1)), state, {}, Direction::forward), 0, 1);
    const Tensor y = made.attention->forward({.queries = x, .keys = x, .mask = Mask::causal()});
    CHECK(worst(y.to_doubles(), expected.to_doubles()) < 1e-12);
    // With all slots the output is another.
    const Made free = make("lstmn", {.width = 6, .heads = heads, .hidden = 6 / heads});
    const Tensor other = free.attention->forward({.queries = x, .keys = x, .mask = Mask::causal()});
    CHECK(worst(other.to_doubles(), expected.to_doubles()) > 1e-3);
  }
}

TEST_CASE("lstmn: keys that are not the queries, biases and wrong options are refused", "[lstmn]") {
  const Made made = make("lstmn", {.width = 4, .heads = 2, .hidden = 2});
  const Tensor x = normal(Shape{1, 3, 4}, 1);
  CHECK_THROWS_WITH(
      made.attention->forward({.queries = x, .keys = normal(Shape{1, 5, 4}, 1), .mask = Mask::causal()}),
      containing("keys are the queries"));
  const Tensor bias = Tensor::zeros(Shape{1, 1, 3, 3}, DType::f64);
  CHECK_THROWS_WITH(made.attention->forward({.queries = x, .keys = x, .mask = Mask::causal().with(bias)}),
                    containing("no bias"));
  Rng rng(1);
  CHECK_THROWS_WITH(make_attention("lstmn:hidden=-1", {.d_model = 4, .causal = true}, rng),
                    containing("hidden = -1"));
  CHECK_THROWS_WITH(make_attention("lstmn:slots=-2", {.d_model = 4, .causal = true}, rng),
                    containing("slots = -2"));
}

}  // namespace heed
