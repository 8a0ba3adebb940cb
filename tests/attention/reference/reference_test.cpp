// The variants against their formulas in plain double loops, and hand-computed results.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/attention/reference/formulas.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Matrix;

Matrix matrix(const Tensor& x) {
  const int64_t width = x.extent(-1);
  return {x.size() / width, width, x.to_doubles()};
}

/// One matrix of a tensor [N, rows, columns].
Matrix part(const Tensor& x, int64_t index) { return matrix(view::slice(x.detach(), 0, index, index + 1)); }

/// The column of one head of a tensor [H, 1, A, 1].
Matrix column_of(const Tensor& x, int64_t head) { return part(reshape(x, Shape{x.extent(0), -1, 1}), head); }

Tensor find(Module& module, const std::string& name) {
  for (const Named& named : tensors(module)) {
    if (named.name == name) return named.tensor->detach();
  }
  fail("no tensor ", name);
}

/// The formula of one head of a module with these weights.
using Formula = std::function<reference::Weigh(MultiHeadAttention&, int64_t head, int64_t head_dim)>;

struct Try {
  int64_t batch, queries, keys, width, heads;
  bool causal, padded, cross;
};

void compare(const std::string& spec, const Try& attempt, const Formula& formula, double epsilon) {
  CAPTURE(spec, attempt.batch, attempt.queries, attempt.keys, attempt.width, attempt.heads, attempt.causal,
          attempt.padded);
  Rng rng(17);
  const auto made = make_attention(
      spec,
      {.d_model = attempt.width, .heads = attempt.heads, .causal = attempt.causal, .cross = attempt.cross},
      rng);
  auto& module = dynamic_cast<MultiHeadAttention&>(*made);
  // Parameters of any value, biases too.
  for (const Named& named : parameters(module)) fill_normal(*named.tensor, 0, 0.7, rng);
  convert(module, DType::f64);
  const Tensor queries(Shape{attempt.batch, attempt.queries, attempt.width}, DType::f64);
  const Tensor other(Shape{attempt.batch, attempt.keys, attempt.width}, DType::f64);
  fill_normal(queries, 0, 1, rng);
  fill_normal(other, 0, 1, rng);
  const Tensor keys = attempt.cross ? other : queries;
  Mask mask = attempt.causal ? Mask::causal() : Mask::none();
  std::vector<int32_t> lengths(static_cast<size_t>(attempt.batch), static_cast<int32_t>(attempt.keys));
  for (size_t b = 1; attempt.padded && b < lengths.size(); ++b)
    lengths[b] = static_cast<int32_t>(attempt.keys / static_cast<int64_t>(b + 1));
  if (attempt.padded) mask = mask & Mask::lengths(Tensor::of<int32_t>(lengths, Shape{attempt.batch}));

  const NoGrad quiet;
  MapRecorder recorder;
  const std::vector<double> y =
      module.forward({.queries = queries, .keys = keys, .mask = mask, .context = {.recorder = &recorder}})
          .to_doubles();
  REQUIRE(recorder.maps.size() == 1);
  const std::vector<double> map = recorder.maps[0].weights.to_doubles();

  const int64_t d = attempt.width / attempt.heads;
  double worst = 0, worst_map = 0;
  for (int64_t b = 0; b < attempt.batch; ++b) {
    const auto allowed = [&](int64_t i, int64_t j) {
      return j < lengths[static_cast<size_t>(b)] && (!attempt.causal || j <= i);
    };
    const Matrix q = project(part(queries, b), matrix(module.query.weight));
    const Matrix k = project(part(keys, b), matrix(module.key.weight)),
                 v = project(part(keys, b), matrix(module.value.weight));
    Matrix joined(attempt.queries, attempt.width);
    for (int64_t h = 0; h < attempt.heads; ++h) {
      const Matrix weights =
          normalised(formula(module, h, d)(columns(q, h * d, d), columns(k, h * d, d), allowed), epsilon);
      const Matrix out = apply(weights, columns(v, h * d, d));
      for (int64_t i = 0; i < out.rows; ++i) {
        for (int64_t c = 0; c < d; ++c) joined.at(i, h * d + c) = out.at(i, c);
      }
      for (int64_t n = 0; n < weights.rows * weights.columns; ++n) {
        const size_t at = static_cast<size_t>((b * attempt.heads + h) * weights.rows * weights.columns + n);
        worst_map = std::max(worst_map, std::abs(map[at] - weights.values[static_cast<size_t>(n)]));
      }
    }
    const Matrix expected = project(joined, matrix(module.output.weight));
    for (size_t n = 0; n < expected.values.size(); ++n) {
      const double found = y[static_cast<size_t>(b) * expected.values.size() + n];
      worst =
          std::max(worst, std::abs(found - expected.values[n]) / std::max(1.0, std::abs(expected.values[n])));
    }
  }
  CHECK(worst < 1e-10);
  CHECK(worst_map < 1e-10);
}

void compare_all(const std::string& spec, const Formula& formula, double epsilon = 0) {
  for (const Try& attempt :
       {Try{1, 1, 1, 1, 1, false, false, false}, Try{2, 2, 2, 3, 3, true, false, false},
        Try{3, 17, 17, 10, 2, false, true, false}, Try{3, 17, 17, 10, 2, true, true, false},
        Try{2, 5, 17, 21, 3, false, true, true}, Try{1, 67, 131, 6, 1, false, false, true},
        Try{1, 131, 131, 34, 2, true, false, false}}) {
    compare(spec, attempt, formula, epsilon);
  }
}

}  // namespace

TEST_CASE("reference: softmax", "[softmax]") {
  compare_all("softmax", [](MultiHeadAttention&, int64_t, int64_t d) {
    return reference::softmax(1 / std::sqrt(static_cast<double>(d)));
  });
  compare_all("softmax:scale=0.25",
              [](MultiHeadAttention&, int64_t, int64_t) { return reference::softmax(0.25); });
}

TEST_CASE("reference: linear", "[linear]") {
  compare_all(
      "linear", [](MultiHeadAttention&, int64_t, int64_t) { return reference::elu_features; }, 1e-6);
  compare_all(
      "linear:epsilon=0.5", [](MultiHeadAttention&, int64_t, int64_t) { return reference::elu_features; },
      0.5);
}

TEST_CASE("reference: additive", "[additive]") {
  const auto formula = [](MultiHeadAttention& module, int64_t head, int64_t) {
    return reference::additive(part(find(module, "from_query"), head), part(find(module, "from_key"), head),
                               part(find(module, "bias"), head), column_of(find(module, "units"), head));
  };
  compare_all("additive", formula);
  compare_all("additive:hidden=5", formula);
  compare_all("additive:bias=false", [](MultiHeadAttention& module, int64_t head, int64_t) {
    const Matrix u = column_of(find(module, "units"), head);
    return reference::additive(part(find(module, "from_query"), head), part(find(module, "from_key"), head),
                               Matrix(1, u.rows), u);
  });
}

namespace {

/// An attention of one head and width 1 whose projections are the given numbers.
struct Scalar {
  explicit Scalar(const std::string& spec, float query = 1) {
    Rng rng(1);
    made = make_attention(spec, {.d_model = 1, .cross = true}, rng);
    auto& layer = dynamic_cast<MultiHeadAttention&>(*made);
    layer.query.weight = Tensor::full(Shape{1, 1}, query);
    layer.key.weight = layer.value.weight = layer.output.weight = Tensor::full(Shape{1, 1}, 1);
  }
  std::vector<float> map(std::initializer_list<float> queries, std::initializer_list<float> keys) {
    MapRecorder recorder;
    made->forward({.queries = column(queries), .keys = column(keys), .context = {.recorder = &recorder}});
    return recorder.maps.at(0).weights.to_host();
  }
  static Tensor column(std::initializer_list<float> values) {
    return reshape(Tensor::from(values), Shape{1, static_cast<int64_t>(values.size()), 1});
  }
  std::unique_ptr<Attention> made;
};

}  // namespace

TEST_CASE("reference: numbers a hand can check", "[softmax][linear][additive]") {
  SECTION("softmax of a zero query is the mean") {
    Scalar one("softmax", 0);
    for (const float weight : one.map({5}, {1, -2, 7, 0})) CHECK(weight == Approx(0.25));
    const Tensor y =
        one.made->forward({.queries = Scalar::column({5}), .keys = Scalar::column({1, -2, 7, 0})});
    CHECK(y.item() == Approx(1.5));
  }
  SECTION("softmax of scores ln 3 and 0") {
    const auto map = Scalar("softmax").map({1}, {std::log(3.0f), 0});
    CHECK(map[0] == Approx(0.75));
    CHECK(map[1] == Approx(0.25));
  }
  SECTION("a huge score copies its value") {
    const auto map = Scalar("softmax").map({100}, {3, 2.5f, -1});
    CHECK(map[0] == Approx(1));
    CHECK(map[1] < 1e-6);
  }
  SECTION("elu + 1 of a zero query and keys 0 and ln 0.5 gives two thirds and one third") {
    const auto map = Scalar("linear").map({0}, {0, std::log(0.5f)});
    CHECK(map[0] == Approx(2.0 / 3).epsilon(1e-5));
    CHECK(map[1] == Approx(1.0 / 3).epsilon(1e-5));
  }
  SECTION("linear attention of equal values gives that value") {
    Scalar one("linear");
    const Tensor y = one.made->forward(
        {.queries = Scalar::column({0.3f, -2}), .keys = Scalar::column({1.5f, 1.5f, 1.5f})});
    for (const float value : y.to_host()) CHECK(value == Approx(1.5).epsilon(1e-5));
  }
  SECTION("additive with one unit: scores u tanh(a q + c k + b)") {
    Scalar one("additive");
    const float weights[] = {1, 1, 0, 2};  // A, C, b, u
    size_t at = 0;
    for (const char* name : {"from_query", "from_key", "bias", "units"}) {
      for (const Named& named : tensors(*one.made)) {
        if (named.name == name) *named.tensor = Tensor::full(named.tensor->shape(), weights[at]);
      }
      ++at;
    }
    const auto map = one.map({0}, {0, std::atanh(0.5f)});  // scores 0 and 1
    CHECK(map[1] / map[0] == Approx(std::exp(1.0)).epsilon(1e-5));
  }
}

TEST_CASE("reference: softmax does not care for the order of keys", "[softmax]") {
  Scalar one("softmax"), two("linear");
  for (Scalar* scalar : {&one, &two}) {
    const Tensor queries = Scalar::column({0.4f, -1});
    const Tensor y = scalar->made->forward({.queries = queries, .keys = Scalar::column({1, 2, 3})});
    const Tensor z = scalar->made->forward({.queries = queries, .keys = Scalar::column({3, 1, 2})});
    for (size_t i = 0; i < 2; ++i) CHECK(y.to_host()[i] == Approx(z.to_host()[i]));
  }
}

TEST_CASE("reference: a bias that is trained gets its gradient", "[softmax]") {
  Rng rng(3);
  const auto made = make_attention("softmax", {.d_model = 4, .heads = 2, .dropout = 0.1}, rng);
  const Tensor x(Shape{1, 3, 4}), fixed(Shape{1, 2, 3, 3});
  fill_normal(x, 0, 1, rng);
  fill_normal(fixed, 0, 1, rng);
  const Tensor trained = leaf(fixed);
  const Tensor plain = made->forward({.queries = x, .keys = x, .mask = Mask::none().with(fixed)});
  const Tensor y = made->forward({.queries = x, .keys = x, .mask = Mask::none().with(trained)});
  backward(sum(y * y));
  REQUIRE(grad_of(trained));
  CHECK(grad_of(trained).shape() == fixed.shape());
  for (size_t i = 0; i < 12; ++i) CHECK(plain.to_host()[i] == Approx(y.to_host()[i]).margin(1e-6));
}

}  // namespace heed
