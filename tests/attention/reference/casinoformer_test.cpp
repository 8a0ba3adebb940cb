// casinoformer against its formula in plain loops, its limits, and properties of its random draws.
#include "heed/tests/attention/reference/casinoformer.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Matrix;

struct Try {
  int64_t batch, heads, queries, keys, d, dv;
  bool causal, padded;
};

/// An attention without its projections, in f64.
struct Alone {
  Alone(const std::string& spec, const Try& t, uint64_t seed = 1) {
    Rng rng(seed);
    made = make_attention(spec,
                          {.d_model = t.heads * t.d,
                           .heads = t.heads,
                           .causal = t.causal,
                           .cross = !t.causal && t.queries != t.keys,
                           .max_length = 64},
                          rng);
    convert(*made, DType::f64);
    q = Tensor(Shape{t.batch, t.heads, t.queries, t.d}, DType::f64);
    k = Tensor(Shape{t.batch, t.heads, t.keys, t.d}, DType::f64);
    v = Tensor(Shape{t.batch, t.heads, t.keys, t.dv}, DType::f64);
    for (const Tensor* x : {&q, &k, &v}) fill_normal(*x, 0, 1, rng);
    if (t.causal) mask = Mask::causal();
    for (int64_t b = 0; b < t.batch; ++b)
      lengths.push_back(static_cast<int32_t>(t.padded ? t.keys / (b + 1) : t.keys));
    if (t.padded) mask = mask & Mask::lengths(Tensor::of<int32_t>(lengths, Shape{t.batch}));
  }
  Tensor operator()(const ForwardContext& context = {}) {
    return dynamic_cast<MultiHeadAttention&>(*made).on_heads({q, k, v}, {.mask = mask, .context = context});
  }
  Matrix projection(int64_t head) const {
    Matrix out(1, 1);
    for (const Named& named : tensors(*made)) {
      if (named.name == "projection") out = part(*named.tensor, head);
    }
    return out;
  }
  /// One matrix of [..., rows, columns].
  static Matrix part(const Tensor& x, int64_t index) {
    const int64_t rows = x.extent(-2), columns = x.extent(-1);
    const std::vector<double> all = x.to_doubles();
    return {rows, columns,
            std::vector<double>(all.begin() + index * rows * columns,
                                all.begin() + (index + 1) * rows * columns)};
  }

  std::unique_ptr<Attention> made;
  Tensor q, k, v;
  Mask mask;
  std::vector<int32_t> lengths;
};

double apart(const Matrix& expected, const Matrix& found) {
  double worst = expected.values.size() == found.values.size() ? 0 : HUGE_VAL;
  for (size_t n = 0; n < expected.values.size() && n < found.values.size(); ++n) {
    const double error =
        std::abs(expected.values[n] - found.values[n]) / std::max(1.0, std::abs(expected.values[n]));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

struct Formula {
  std::string mass = "align";
  double exponent = 0.5;
  bool counted = true, self = true, by_sum = false;

  std::string spec() const {
    return text("casinoformer:mass=", mass, ",exponent=", exponent,
                ",denominator=", counted ? "counted" : "paper", ",include_self=", self ? "true" : "false",
                ",mass_reduce=", by_sum ? "sum" : "mean", ",base=0.8,select=argmax");
  }
};

void compare(const Formula& f, const Try& t) {
  CAPTURE(f.spec(), t.batch, t.heads, t.queries, t.keys, t.d, t.dv, t.causal, t.padded);
  Alone one(f.spec(), t);
  const double scale = 1 / std::sqrt(static_cast<double>(t.d));
  Tensor slope(Shape{t.batch, t.heads, t.queries, t.dv}, DType::f64);
  Rng rng(9);
  fill_normal(slope, 0, 1, rng);
  MapRecorder recorder;
  one.q = leaf(one.q);
  one.k = leaf(one.k);
  one.v = leaf(one.v);
  const Tensor y = one({.recorder = &recorder});
  REQUIRE(recorder.maps.size() == 1);
  backward(y, slope);
  for (int64_t b = 0; b < t.batch; ++b) {
    // Buds of each query, from the masses of all heads.
    std::vector<std::vector<reference::Bud>> buds;
    for (int64_t i = 0; i < t.queries; ++i) {
      const int64_t before = t.causal ? i + t.keys - t.queries + (f.self ? 1 : 0) : t.keys;
      const int64_t leaves = std::min<int64_t>(before, one.lengths[static_cast<size_t>(b)]);
      buds.push_back(reference::grow_buds(leaves, f.exponent, [&](int64_t begin, int64_t end) {
        const auto size = static_cast<double>(end - begin);
        if (f.mass == "uniform") return 1.0;
        if (f.mass == "edh") {
          return std::pow(0.8, static_cast<double>(leaves - end)) -
                 std::pow(0.8, static_cast<double>(leaves - begin)) + 1e-10;
        }
        double mass = 0;
        for (int64_t h = 0; h < t.heads; ++h) {
          const Matrix q = Alone::part(one.q.detach(), b * t.heads + h),
                       k = Alone::part(one.k.detach(), b * t.heads + h);
          if (f.mass == "lookahead" || f.mass == "contrast" || f.mass == "gap" || f.mass == "variance") {
            mass += reference::moment_mass(f.mass, q, i, k, leaves, begin, end, scale);
            continue;
          }
          double along = 0;
          if (f.mass == "align") {
            for (int64_t j = begin; j < end; ++j) along += reference::dot(q, i, k, j);
          } else {
            const Matrix w = one.projection(h);
            const auto phi = reference::bud_features(f.mass, q, i, w);
            for (int64_t j = begin; j < end; ++j) {
              const auto psi = reference::bud_features(f.mass, k, j, w);
              for (size_t c = 0; c < phi.size(); ++c) along += phi[c] * psi[c];
            }
          }
          mass += f.mass.ends_with("align") ? std::exp(scale * along / size) : std::max(along / size, 0.0);
        }
        return std::max(mass, 0.0) * (f.by_sum ? size : 1) + 1e-10;
      }));
    }
    for (int64_t h = 0; h < t.heads; ++h) {
      const int64_t at = b * t.heads + h;
      const auto own = [&](const Tensor& x) { return Alone::part(x.detach(), at); };
      const reference::BudAttention expected =
          attend_buds(own(one.q), own(one.k), own(one.v), own(slope), buds, scale, f.counted);
      CHECK(apart(expected.out, own(y)) < 1e-11);
      CHECK(apart(expected.map, own(recorder.maps[0].weights)) < 1e-11);
      CHECK(apart(expected.dq, own(grad_of(one.q))) < 1e-10);
      CHECK(apart(expected.dk, own(grad_of(one.k))) < 1e-10);
      CHECK(apart(expected.dv, own(grad_of(one.v))) < 1e-10);
    }
  }
}

const std::vector<Try> tries{{1, 1, 1, 1, 1, 1, true, false},   {2, 2, 2, 2, 1, 3, true, false},
                             {1, 1, 17, 17, 4, 4, true, false}, {2, 2, 17, 17, 3, 5, true, true},
                             {2, 2, 17, 17, 3, 5, false, true}, {2, 1, 3, 21, 5, 2, false, false},
                             {1, 2, 5, 19, 2, 2, true, false}};

}  // namespace

TEST_CASE("reference: casinoformer, greedy buds by every mass", "[casinoformer]") {
  for (const char* mass : {"uniform", "edh", "align", "posalign", "rff", "favor", "favor_relu"}) {
    for (const Try& t : tries) compare({.mass = mass}, t);
    compare({.mass = mass, .by_sum = true}, tries[3]);
  }
}

TEST_CASE("reference: casinoformer, greedy buds by the moments of scores", "[casinoformer]") {
  for (const char* mass : {"lookahead", "contrast", "gap", "variance"}) {
    for (const Try& t : tries) compare({.mass = mass}, t);
    // More keys than Z has nodes, a number that is no power of two.
    compare({.mass = mass, .exponent = 0.6}, {1, 2, 4, 75, 8, 3, true, false});
    compare({.mass = mass, .exponent = 0.6}, {2, 1, 3, 50, 3, 3, false, true});
  }
}

TEST_CASE("reference: casinoformer, denominators, exponents and the own key", "[casinoformer]") {
  for (const bool counted : {true, false}) {
    for (const double exponent : {0.2, 0.7, 1.0}) {
      for (const Try& t : tries) {
        compare({.exponent = exponent, .counted = counted}, t);
        if (t.causal) compare({.exponent = exponent, .counted = counted, .self = false}, t);
      }
    }
  }
}

TEST_CASE("casinoformer: exponent 1 is softmax over the past", "[casinoformer]") {
  for (const char* rest : {"", ",denominator=paper", ",mass=uniform", ",mass=favor"}) {
    for (const Try& t : tries) {
      CAPTURE(rest, t.queries, t.keys, t.causal, t.padded);
      Alone tree(std::string("casinoformer:exponent=1") + rest, t), exact("softmax", t);
      exact.q = tree.q;
      exact.k = tree.k;
      exact.v = tree.v;
      Rng noise(3);
      for (const Tensor& y : {tree(), tree({.rng = &noise})})
        CHECK(apart(Matrix(1, y.size(), exact().to_doubles()), Matrix(1, y.size(), y.to_doubles())) < 1e-12);
    }
  }
}

TEST_CASE("casinoformer: constant values come back, unless the denominator is the paper's",
          "[casinoformer]") {
  for (const char* where : {"sample", "argmax"}) {
    for (const bool counted : {true, false}) {
      const Try t{1, 2, 17, 17, 4, 3, true, false};
      Alone tree(text("casinoformer:select=", where, ",denominator=", counted ? "counted" : "paper"), t);
      tree.v = Tensor::full(tree.v.shape(), 1, DType::f64);
      Rng noise(5);
      const std::vector<double> y = tree({.rng = &noise}).to_doubles();
      const double least = *std::min_element(y.begin(), y.end()),
                   maximum = *std::max_element(y.begin(), y.end());
      CHECK(least > 1 - 1e-12);
      if (counted) CHECK(maximum < 1 + 1e-12);
      if (!counted) CHECK(maximum > 2);
    }
  }
}

TEST_CASE("casinoformer: without its own key the first query sees nothing", "[casinoformer]") {
  const Try t{2, 2, 9, 9, 3, 3, true, false};
  Alone tree("casinoformer:include_self=false", t);
  const Tensor y = tree();
  for (const double value : view::slice(y, 2, 0, 1).to_doubles()) CHECK(value == 0);
  const std::vector<double> second = view::slice(y, 2, 1, 2).to_doubles(),
                            first = view::slice(tree.v, 2, 0, 1).to_doubles();
  for (size_t n = 0; n < first.size(); ++n) CHECK(second[n] == Approx(first[n]).epsilon(1e-14));
  Alone wide("casinoformer:include_self=false", {1, 1, 4, 4, 2, 2, false, false});
  CHECK_THROWS_WITH(wide(), containing("include_self = false is for causal"));
}

TEST_CASE("casinoformer: draws come from the noise, or from those given", "[casinoformer]") {
  const Try t{2, 2, 40, 40, 4, 4, true, false};
  Alone tree("casinoformer:parallel=2", t);
  const auto with = [&](uint64_t seed) {
    Rng noise(seed);
    return tree({.rng = &noise}).to_doubles();
  };
  CHECK(with(1) == with(1));
  CHECK(with(1) != with(2));
  CHECK(with(1) != tree().to_doubles());
  Alone greedy("casinoformer:parallel=2,select=argmax", t);
  Rng noise(1);
  CHECK(greedy({.rng = &noise}).to_doubles() == greedy().to_doubles());
  CHECK(greedy().to_doubles() != tree().to_doubles());

  class Give final : public Fields {
   public:
    explicit Give(const Tensor& numbers) : numbers_(numbers) {}

   private:
    void on(const char* name, Tensor& tensor) override {
      if (std::string(name) == "draws") tensor = numbers_;
    }
    void on_empty(const char* name, Tensor& tensor) override { on(name, tensor); }
    Tensor numbers_;
  };
  const auto given = [&](const Shape& shape, uint64_t seed) {
    const Tensor numbers(shape);
    Rng rng(seed);
    fill_uniform(numbers, 0, 1, rng);
    Give give(numbers);
    tree.made->fields(give);
    return tree().to_doubles();
  };
  const auto once = given(Shape{40, 15}, 1);
  CHECK(once == with(7));
  CHECK(given(Shape{40, 15}, 1) == once);
  CHECK(given(Shape{40, 20}, 2) != once);
  CHECK_THROWS_WITH(given(Shape{40, 14}, 1), containing("[40, 15] or wider"));
}

TEST_CASE("casinoformer: evaluation draws by seed, layer and position, and nothing else", "[casinoformer]") {
  const Try t{2, 2, 40, 40, 4, 4, true, false};
  Alone tree("casinoformer:parallel=2", t);
  const std::vector<double> y = tree().to_doubles();
  CHECK(tree().to_doubles() == y);
  CHECK(Alone("casinoformer:parallel=2,seed=2", t)().to_doubles() != y);
  // A sequence gets the same beside another as alone.
  const auto second = [](const Tensor& x) { return contiguous(view::slice(x, 0, 1, 2)); };
  const std::vector<double> both = second(tree()).to_doubles();
  Alone alone("casinoformer:parallel=2", t);
  alone.q = second(tree.q);
  alone.k = second(tree.k);
  alone.v = second(tree.v);
  CHECK(alone().to_doubles() == both);
  // The last token by itself gets what it gets among the others.
  auto& layer = dynamic_cast<MultiHeadAttention&>(*alone.made);
  const auto cache = layer.new_cache();
  Tensor last;
  for (int64_t i = 0; i < 40; ++i) {
    const auto at = [i](const Tensor& x) { return contiguous(view::slice(x, 2, i, i + 1)); };
    const NoGrad quiet;
    last = layer.on_heads({at(alone.q), at(alone.k), at(alone.v)},
                          {.mask = Mask::causal(), .cache = cache.get()});
  }
  CHECK(last.to_doubles() == contiguous(view::slice(alone(), 2, 39, 40)).to_doubles());
}

TEST_CASE("casinoformer: P and E matter in evaluation", "[casinoformer]") {
  const Try t{1, 2, 64, 64, 4, 4, true, false};
  const auto run = [&](const std::string& options) {
    return Alone("casinoformer:" + options, t)().to_doubles();
  };
  const std::vector<double> y = run("exponent=0.5,parallel=1");
  CHECK(run("exponent=0.5,parallel=4") != y);
  CHECK(run("exponent=0.7,parallel=1") != y);
  CHECK(run("exponent=1,parallel=1") == run("exponent=1,parallel=8"));
  // P buds at once begin at the level of P nodes: of 64 keys and 8 buds, P = 8 looks at blocks of 8 keys.
  MapRecorder recorder;
  Alone blocks("casinoformer:exponent=0.5,parallel=8", t);
  blocks({.recorder = &recorder});
  const std::vector<double> map = recorder.maps.at(0).weights.to_doubles();
  for (size_t j = 0; j < 64; ++j) CHECK(map[63 * 64 + j] == map[63 * 64 + j / 8 * 8]);
}

TEST_CASE("casinoformer: a recorded map is of the draw of the output, in training of that of evaluation",
          "[casinoformer]") {
  const Try t{1, 2, 48, 48, 4, 4, true, false};
  Alone tree("casinoformer:parallel=2", t);
  MapRecorder recorder;
  const std::vector<double> y = tree({.recorder = &recorder}).to_doubles();
  for (int64_t h = 0; h < 2; ++h) {
    const Matrix map = Alone::part(recorder.maps.at(0).weights, h), v = Alone::part(tree.v, h);
    double worst = 0;
    for (int64_t i = 0; i < 48; ++i) {
      for (int64_t c = 0; c < 4; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < 48; ++j) sum += map.at(i, j) * v.at(j, c);
        worst = std::max(worst, std::abs(sum - y[static_cast<size_t>((h * 48 + i) * 4 + c)]));
      }
    }
    CHECK(worst < 1e-12);
  }
  Rng noise(4);
  MapRecorder noisy;
  CHECK(tree({.rng = &noise, .recorder = &noisy}).to_doubles() != y);
  CHECK(noisy.maps.at(0).weights.to_doubles() == recorder.maps.at(0).weights.to_doubles());
}

TEST_CASE("casinoformer: what a token's own projection changes", "[casinoformer]") {
  const Try t{1, 2, 33, 33, 4, 4, true, false};
  Alone sequence("casinoformer:mass=favor", t), token("casinoformer:mass=favor,redraw=per_token", t);
  CHECK(sequence().to_doubles() != token().to_doubles());
  CHECK(token().to_doubles() == token().to_doubles());
  // By steps, a token gets the same projection as at once.
  auto& layer = dynamic_cast<MultiHeadAttention&>(*token.made);
  const NoGrad quiet;
  const std::vector<double> full = token().to_doubles();
  const auto cache = layer.new_cache();
  for (int64_t i = 0; i < 33; ++i) {
    const auto at = [i](const Tensor& x) { return contiguous(view::slice(x, 2, i, i + 1)); };
    const Tensor y = layer.on_heads({at(token.q), at(token.k), at(token.v)},
                                    {.mask = Mask::causal(), .cache = cache.get()});
    const std::vector<double> row = y.to_doubles();
    for (int64_t n = 0; n < 8; ++n)
      CHECK(row[static_cast<size_t>(n)] ==
            Approx(full[static_cast<size_t>((n / 4 * 33 + i) * 4 + n % 4)]).epsilon(1e-12).margin(1e-13));
  }
}

TEST_CASE("casinoformer: options that cannot be are refused", "[casinoformer]") {
  const Try t{1, 1, 2, 2, 2, 2, true, false};
  CHECK_THROWS_WITH(Alone("casinoformer:exponent=1.1", t), containing("exponent = 1.1"));
  CHECK_THROWS_WITH(Alone("casinoformer:base=1", t), containing("base = 1"));
  CHECK_THROWS_WITH(Alone("casinoformer:parallel=3", t), containing("a power of two"));
  CHECK_THROWS_WITH(Alone("casinoformer:mass=heavy", t), containing("favor_relu"));
}

}  // namespace heed
