// Attention with factored maps against double loops over pairs; limits, identities and hand-computed results.
#include <cmath>
#include <cstring>

#include "heed/attention/base/kernelized_attention.h"
#include "heed/core/operation_count.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/attention/reference/against.h"
#include "heed/tests/attention/reference/factored.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Allowed;
using reference::Example;
using reference::head_of;
using reference::Matrix;
using reference::Values;

/// A formula of q, k and which query may attend to which key.
using Formula = std::function<Matrix(const Matrix& q, const Matrix& k, const Allowed& allowed,
                                     const Values& values, const Example& e, int64_t keys)>;

void against(const std::string& spec, const Formula& formula, const std::vector<std::string>& fixed = {},
             bool causal = true, double tolerance = 1e-9) {
  for (const Example& example : reference::usual_examples(causal, true)) {
    const auto map = [&](const Example& e, const Values& values, int64_t b, int64_t h) {
      const Allowed allowed = [&](int64_t i, int64_t j) { return j < e.keys_of(b) && (!e.causal || j <= i); };
      return formula(head_of(values.at("q"), b * e.H + h, e.N, e.d),
                     head_of(values.at("k"), b * e.H + h, e.M, e.d), allowed, values, e, e.keys_of(b));
    };
    reference::against(spec, example, map, {}, fixed, tolerance);
  }
}

Matrix directions(const Values& values, int64_t d) {
  const auto rows = static_cast<int64_t>(values.at("W").size()) / d;
  return head_of(values.at("W"), 0, rows, d);
}

std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& config, uint64_t seed = 5) {
  Rng rng(seed);
  auto attention = make_attention(spec, config, rng);
  convert(*attention, DType::f64);
  return attention;
}

Tensor on_heads(Attention& attention, const Tensor& q, const Tensor& k, const Tensor& v,
                const Mask& mask = {}, const ForwardContext& context = {}) {
  return dynamic_cast<MultiHeadAttention&>(attention).on_heads({q, k, v}, {.mask = mask, .context = context});
}

Tensor random(const Shape& shape, uint64_t seed, double deviation = 1) {
  return battery::numbers(shape, seed, DType::f64) * deviation;
}

/// The map of one head of width 1.
std::vector<double> map_of(const std::string& spec, std::vector<double> queries, std::vector<double> keys) {
  const auto attention = made(spec, {.d_model = 1, .cross = true});
  const auto column = [](const std::vector<double>& x) {
    return Tensor::of<double>(x, Shape{1, 1, static_cast<int64_t>(x.size()), 1});
  };
  MapRecorder recorder;
  on_heads(*attention, column(queries), column(keys), column(keys), {}, {.recorder = &recorder});
  return recorder.maps.at(0).weights.to_doubles();
}

/// The battery on a variant made with these options.
void hold(Variant variant, const std::string& options, MapKind map) {
  const Spec spec = parse_spec(std::string(variant.traits.name) + ":" + options);
  const auto make = variant.make;
  variant.traits.map = map;
  variant.make = [make, spec](const AttentionConfig& config, const Spec&, Rng& rng) {
    return make(config, spec, rng);
  };
  for (const auto property : {battery::gradient, battery::causality, battery::padding, battery::steps,
                              battery::cache, battery::map, battery::leaks}) {
    const battery::Report report = battery::over_all_settings(variant, property);
    INFO(options << ": " << report);
    CHECK(report.empty());
  }
}

}  // namespace

TEST_CASE("reference: fastmax of several degrees and normalisations", "[fastmax]") {
  for (const int64_t p : {0, 1, 2, 3, 5}) {
    // epsilon keeps sums of signed weights away from zero
    const double epsilon = p % 2 == 1 ? 60 : 0;
    const std::string of = "fastmax:p=" + std::to_string(p) + ",epsilon=" + std::to_string(epsilon);
    against(of, [=](const Matrix& q, const Matrix& k, const Allowed& allowed, auto&&...) {
      return reference::polynomial(reference::standardised(q), reference::standardised(k),
                                   reference::taylor(p), 1, allowed, epsilon);
    });
    against(of + ",normalise=none,denum_term=2",
            [=](const Matrix& q, const Matrix& k, const Allowed& allowed, auto&&...) {
              return reference::polynomial(q, k, reference::taylor(p),
                                           0.5 / std::sqrt(static_cast<double>(q.columns)), allowed, epsilon);
            });
  }
  against("fastmax:normalise=l2,score_scale=0.5,a0=2,a1=-0.25,a2=1",
          [](const Matrix& q, const Matrix& k, const Allowed& allowed, auto&&...) {
            return reference::polynomial(reference::unit_rows(q), reference::unit_rows(k), {2, -0.25, 1}, 0.5,
                                         allowed);
          });
}

TEST_CASE("reference: fastmax over the largest norm of all tokens", "[fastmax]") {
  for (const int centre : {0, 1, 2}) {
    const std::string how = centre == 0   ? "scaled,lim=2"
                            : centre == 1 ? "maxnorm,centre=tokens"
                                          : "maxnorm,centre=features";
    for (const Example& example : reference::usual_examples(true, true)) {
      if (example.N == 1 || (example.d == 1 && centre == 2)) continue;  // nothing is left of what is centred
      const auto map = [&](const Example& e, const Values& values, int64_t b, int64_t h) {
        const Allowed allowed = [&](int64_t i, int64_t j) {
          return j < e.keys_of(b) && (!e.causal || j <= i);
        };
        const Matrix q = head_of(values.at("q"), b * e.H + h, e.N, e.d),
                     k = head_of(values.at("k"), b * e.H + h, e.M, e.d);
        if (e.keys_of(b) == 0) return Matrix(e.N, e.M);
        return reference::polynomial(reference::over_largest(q, e.cross ? e.N : e.keys_of(b), centre),
                                     reference::over_largest(k, e.keys_of(b), centre), {1, 1, 0.5},
                                     centre == 0 ? 0.25 : 1, allowed);
      };
      reference::against("fastmax:normalise=" + how, example, map);
    }
  }
}

TEST_CASE("reference: li is fastmax of degree 1 with unit rows", "[li][fastmax]") {
  against("li:epsilon=0.5", [](const Matrix& q, const Matrix& k, const Allowed& allowed, auto&&...) {
    return reference::polynomial(reference::unit_rows(q), reference::unit_rows(k), {1, 1}, 1, allowed, 0.5);
  });
  const auto li = made("li:epsilon=0", {.d_model = 8, .heads = 2}),
             fastmax = made("fastmax:p=1,normalise=l2", {.d_model = 8, .heads = 2});
  const Tensor q = random(Shape{2, 2, 19, 4}, 1), k = random(Shape{2, 2, 19, 4}, 2),
               v = random(Shape{2, 2, 19, 3}, 3);
  CHECK(battery::distance(on_heads(*li, q, k, v), on_heads(*fastmax, q, k, v)) < 1e-13);
}

TEST_CASE("reference: efficient", "[efficient]") {
  against("efficient", [](const Matrix& q, const Matrix& k, const Allowed& allowed, auto&&...) {
    return reference::efficient(q, k, allowed);
  });
  const auto one = made("efficient", {.d_model = 4});
  const Tensor v = random(Shape{1, 1, 1, 3}, 3);
  CHECK(battery::distance(on_heads(*one, random(Shape{1, 1, 1, 4}, 1), random(Shape{1, 1, 1, 4}, 2), v), v) <
        1e-14);
}

TEST_CASE("reference: performer, positive and hyperbolic, with and without epsilon", "[performer]") {
  for (const bool both : {false, true}) {
    for (const double epsilon : {0.0, 1e-6, 0.05}) {
      const std::string spec = std::string("performer:m=6,features=") + (both ? "hyperbolic" : "positive") +
                               ",epsilon=" + std::to_string(epsilon);
      against(spec,
              [=](const Matrix& q, const Matrix& k, const Allowed& allowed, const Values& values,
                  const Example& e, int64_t) {
                return reference::favor(q, k, directions(values, e.d), both, epsilon, allowed);
              },
              {"W"});
    }
  }
}

TEST_CASE("reference: performer with rectified features, in both forms", "[performer_relu]") {
  for (const bool both : {false, true}) {
    against(
        std::string("performer_relu:m=6,epsilon=0.01,form=") + (both ? "casinoformer" : "performer"),
        [=](const Matrix& q, const Matrix& k, const Allowed& allowed, const Values& values, const Example& e,
            int64_t) { return reference::relu_features(q, k, directions(values, e.d), both, 0.01, allowed); },
        {"W"});
  }
}

TEST_CASE("reference: performer with rectified entries, without directions", "[performer_relu]") {
  against("performer_relu:form=entries,epsilon=0.01",
          [](const Matrix& q, const Matrix& k, const Allowed& allowed, const Values& values, const Example&,
             int64_t) {
            CHECK_FALSE(values.contains("W"));
            Matrix out(q.rows, k.rows);
            for (int64_t i = 0; i < q.rows; ++i) {
              for (int64_t j = 0; j < k.rows; ++j) {
                for (int64_t c = 0; allowed(i, j) && c < q.columns; ++c)
                  out.at(i, j) += (std::max(q.at(i, c), 0.0) + 0.01) * (std::max(k.at(j, c), 0.0) + 0.01);
              }
            }
            return reference::normalised(out, 0);
          });
}

TEST_CASE("reference: random Fourier features", "[rff]") {
  against(
      "rff:m=48",
      [](const Matrix& q, const Matrix& k, const Allowed& allowed, const Values& values, const Example& e,
         int64_t) { return reference::fourier(q, k, directions(values, e.d), allowed); },
      {"W"}, true, 1e-7);
}

TEST_CASE("reference: cosformer", "[cosformer]") {
  against("cosformer",
          [](const Matrix& q, const Matrix& k, const Allowed& allowed, const Values&, const Example& e,
             int64_t) { return reference::cosformer(q, k, std::max(e.N, e.M), allowed, 1e-6); });
}

TEST_CASE("reference: based, and where it is fastmax of degree 2", "[based][fastmax]") {
  for (const Example& example : reference::usual_examples(true, true)) {
    const bool narrowed = example.d > 2;
    const auto map = [&](const Example& e, const Values& values, int64_t b, int64_t h) {
      const Allowed allowed = [&](int64_t i, int64_t j) { return j < e.keys_of(b) && (!e.causal || j <= i); };
      Matrix q = head_of(values.at("q"), b * e.H + h, e.N, e.d),
             k = head_of(values.at("k"), b * e.H + h, e.M, e.d);
      if (narrowed) {
        q = apply(q, head_of(values.at("to_query"), h, e.d, 2));
        k = apply(k, head_of(values.at("to_key"), h, e.d, 2));
      }
      return reference::polynomial(q, k, {1, 1, 0.5}, 1 / std::sqrt(static_cast<double>(q.columns)), allowed,
                                   1e-12);
    };
    reference::against(
        "based:features=2", example, map,
        narrowed ? std::vector<std::string>{"to_query", "to_key"} : std::vector<std::string>());
  }
  const AttentionConfig config{.d_model = 12, .heads = 3};
  const auto based = made("based:epsilon=0", config),
             fastmax = made("fastmax:normalise=none,denum_term=1", config);
  const Tensor q = random(Shape{2, 3, 19, 4}, 1), k = random(Shape{2, 3, 19, 4}, 2),
               v = random(Shape{2, 3, 19, 3}, 3);
  CHECK(battery::distance(on_heads(*based, q, k, v), on_heads(*fastmax, q, k, v)) < 1e-13);
}

TEST_CASE("based: every second layer is softmax over a window, and cross-attention never is", "[based]") {
  const auto run = [](const std::string& spec, int64_t layer, bool causal) {
    const auto attention = made(
        spec, {.d_model = 6, .heads = 2, .causal = causal, .max_length = 40, .layer = layer, .layers = 4});
    const Tensor q = random(Shape{2, 2, 40, 3}, 1), k = random(Shape{2, 2, 40, 3}, 2),
                 v = random(Shape{2, 2, 40, 3}, 3);
    return on_heads(*attention, q, k, v, causal ? Mask::causal() : Mask::none());
  };
  for (const bool causal : {false, true}) {
    const std::string window = causal ? "window:left=9,right=0" : "window:left=5,right=5";
    for (const int64_t layer : {0, 1, 2, 3}) {
      const Tensor y = run("based:window=10", layer, causal);
      const double near = battery::distance(y, run(window, layer, causal)),
                   far = battery::distance(y, run("based:window=0", layer, causal));
      CHECK((layer % 2 == 1 ? near : far) < 1e-14);
      CHECK((layer % 2 == 1 ? far : near) > 1e-3);
    }
  }
  const auto cross = made("based", {.d_model = 6, .heads = 2, .cross = true, .max_length = 40, .layer = 1});
  const auto cache = cross->new_cache();
  CHECK(dynamic_cast<const SumCache*>(cache.get()) != nullptr);
  CHECK_THROWS_WITH(made("based:window=-1", {.d_model = 6, .layer = 1}), containing("window = -1"));
  CHECK_THROWS_WITH(made("based:features=-1", {.d_model = 6, .layer = 1}), containing("features = -1"));
}

TEST_CASE("factored: numbers a hand can check", "[fastmax][linear]") {
  for (const std::string p : {"1", "2"}) {
    const auto map = map_of("fastmax:p=" + p + ",normalise=none,denum_term=1", {1}, {1, -0.5});
    CHECK(map[0] == Approx(0.8).epsilon(1e-14));
    CHECK(map[1] == Approx(0.2).epsilon(1e-14));
  }
  for (const double weight : map_of("fastmax:p=0", {3}, {1, -2, 7, 0}))
    CHECK(weight == Approx(0.25).epsilon(1e-14));
  const auto linear = map_of("linear:epsilon=1e-12", {0}, {0, std::log(0.5)});
  CHECK(linear[0] == Approx(2.0 / 3).epsilon(1e-10));
  CHECK(linear[1] == Approx(1.0 / 3).epsilon(1e-10));
}

TEST_CASE("factored: fastmax of a high degree is softmax of the scores", "[fastmax]") {
  const AttentionConfig config{.d_model = 4};
  const auto fastmax = made("fastmax:p=12,normalise=none,denum_term=1", config),
             softmax = made("softmax", config);
  for (const int64_t length : {9, 2000}) {  // by pairs, and by 1820 monomials
    const Tensor q = random(Shape{1, 1, length, 4}, 1, 0.5), k = random(Shape{1, 1, length, 4}, 2, 0.5),
                 v = random(Shape{1, 1, length, 3}, 3);
    CHECK(battery::distance(on_heads(*fastmax, q, k, v), on_heads(*softmax, q, k, v)) < 1e-6);
  }
}

TEST_CASE("factored: equal values come back, and the order of keys does not matter", "[fastmax]") {
  const AttentionConfig config{.d_model = 8, .heads = 2};
  for (const std::string spec : {"fastmax", "fastmax:p=4", "linear:epsilon=1e-13", "li:epsilon=1e-13",
                                 "efficient", "performer", "performer_relu", "based"}) {
    CAPTURE(spec);
    const auto attention = made(spec, config);
    const Tensor q = random(Shape{1, 2, 90, 4}, 1), k = random(Shape{1, 2, 90, 4}, 2),
                 v = random(Shape{1, 2, 90, 5}, 3);
    const Tensor same = Tensor::full(v.shape(), 1.5, DType::f64);
    CHECK(battery::distance(on_heads(*attention, q, k, same), same) < 1e-10);
    CHECK(battery::distance(on_heads(*attention, q, k, same, Mask::causal()), same) < 1e-10);
    const auto swapped = [](const Tensor& x) {
      return concat(std::vector<Tensor>{slice(x, 2, 40, 90), slice(x, 2, 0, 40)}, 2);
    };
    CHECK(battery::distance(on_heads(*attention, q, swapped(k), swapped(v)), on_heads(*attention, q, k, v)) <
          1e-10);
  }
}

TEST_CASE("factored: more keys than causal queries are the past of the first", "[fastmax][linear]") {
  for (const std::string spec :
       {"fastmax", "linear", "efficient", "performer", "rff", "cosformer:length=90"}) {
    CAPTURE(spec);
    const auto attention = made(spec, {.d_model = 4});
    const Tensor q = random(Shape{2, 1, 90, 4}, 1), k = random(Shape{2, 1, 90, 4}, 2),
                 v = random(Shape{2, 1, 90, 5}, 3);
    const Mask mask =
        Mask::causal() & Mask::lengths(Tensor::of<int32_t>(std::vector<int32_t>{90, 30}, Shape{2}));
    const Tensor whole = on_heads(*attention, q, k, v, mask);
    const Tensor last = on_heads(*attention, slice(q, 2, 50, 90), k, v, mask);
    CHECK(battery::distance(last, slice(whole, 2, 50, 90)) < 1e-10);
    CHECK_THROWS_WITH(on_heads(*attention, q, slice(k, 2, 0, 50), slice(v, 2, 0, 50), mask),
                      Catch::Matchers::Contains("keys") || Catch::Matchers::Contains("position"));
  }
}

TEST_CASE("factored: the battery on other options", "[fastmax][performer]") {
  hold(variant::fastmax(), "p=1,normalise=l2,epsilon=0.1", MapKind::signed_);
  hold(variant::fastmax(), "p=3,normalise=l2,a0=4,guard=true", MapKind::signed_);
  hold(variant::fastmax(), "p=4,dropout=standard", MapKind::exact);
  hold(variant::fastmax(), "p=2,dropout=1d,score_scale=0.3", MapKind::exact);
  hold(variant::fastmax(), "p=0", MapKind::exact);
  hold(variant::performer(), "features=hyperbolic,m=7,epsilon=0", MapKind::exact);
  hold(variant::performer_relu(), "form=casinoformer,orthogonal=false,epsilon=0.1", MapKind::signed_);
  hold(variant::performer_relu(), "form=entries", MapKind::exact);
}

TEST_CASE("factored: dropout leaves sums as they are on average", "[fastmax]") {
  const double rate = 0.4;
  const Tensor q = random(Shape{1, 1, 5, 3}, 1, 0.5), k = random(Shape{1, 1, 5, 3}, 2, 0.5),
               v = random(Shape{1, 1, 5, 2}, 3);
  for (const bool causal : {false, true}) {
    for (const std::string mode : {"quadratic", "standard", "1d"}) {
      CAPTURE(causal, mode);
      // A large epsilon makes the output the sum itself. Where entries are dropped, monomials of degree 2
      // grow on average.
      Rng rng(5);
      const std::string degree = mode == "quadratic" ? "2" : "1";
      const auto attention =
          make_attention("fastmax:normalise=none,denum_term=1,epsilon=1e9,p=" + degree + ",dropout=" + mode,
                         {.d_model = 3, .dropout = rate}, rng);
      const Mask mask = causal ? Mask::causal() : Mask::none();
      const std::vector<double> whole = on_heads(*attention, q, k, v, mask).to_doubles();
      const int draws = 4000;
      std::vector<double> mean(whole.size()), square(whole.size());
      Rng noise(7);
      for (int n = 0; n < draws; ++n) {
        const std::vector<double> y = on_heads(*attention, q, k, v, mask, {.rng = &noise}).to_doubles();
        for (size_t i = 0; i < y.size(); ++i) {
          mean[i] += y[i] / draws;
          square[i] += y[i] * y[i] / draws;
        }
        noise.advance();
      }
      double moved = 0;
      for (size_t i = 0; i < whole.size(); ++i) {
        const double error = std::sqrt(std::max(0.0, square[i] - mean[i] * mean[i]) / draws);
        moved = std::max(moved, error);
        CHECK(std::abs(mean[i] - whole[i]) < 4.5 * error + 1e-18);
      }
      CHECK(moved > 0);
    }
  }
}

TEST_CASE("factored: a training step of fastmax holds no pairs and no monomials of tokens", "[fastmax]") {
  const battery::WithThreads one(1);
  const int64_t length = 8192, d = 32;
  const auto attention = [] {
    Rng rng(5);
    return make_attention("fastmax", {.d_model = 32}, rng);
  }();
  const auto input = [&](uint64_t seed) { return leaf(battery::numbers(Shape{1, 1, length, d}, seed)); };
  const Tensor q = input(1), k = input(2), v = input(3), slope = battery::numbers(Shape{1, 1, length, d}, 4);
  for (const Mask& mask : {Mask::none(), Mask::causal()}) {
    reset_peak(Device::cpu);
    const int64_t live = memory_use(Device::cpu).live;
    backward(on_heads(*attention, q, k, v, mask), slope);
    const int64_t used = memory_use(Device::cpu).peak - live;
    CHECK(used < 10 * length * d * 4);
    CHECK(used < length * d * d);
    for (const Tensor& x : {q, k, v}) x.node()->grad = Tensor();
  }
}

TEST_CASE("fastmax: many wide keys do not overflow single precision", "[fastmax]") {
  for (const bool causal : {false, true}) {
    Rng rng(5);
    const auto fastmax = make_attention("fastmax:p=2", {.d_model = 64, .causal = causal}, rng);
    const Tensor q = leaf(battery::numbers(Shape{1, 1, 4096, 64}, 1) * 80),
                 k = leaf(battery::numbers(Shape{1, 1, 4096, 64}, 2) * 80);
    const Tensor v = leaf(Tensor::full(Shape{1, 1, 4096, 64}, 3, DType::f32));
    const Tensor y = on_heads(*fastmax, q, k, v, causal ? Mask::causal() : Mask::none());
    CHECK(battery::distance(y, Tensor::full(y.shape(), 3, DType::f32)) < 1e-5);
    backward(sum(y * battery::numbers(y.shape(), 3)));
    for (const Tensor& x : {q, k, v}) CHECK(battery::all_finite(grad_of(x)));
  }
}

TEST_CASE("fastmax: what it cannot do is refused with the reason", "[fastmax]") {
  const auto message = [](const std::string& spec) -> std::string {
    try {
      made(spec, {.d_model = 4});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("fastmax:p=-1").find("p = -1") != std::string::npos);
  CHECK(message("fastmax:p=1,dropout=quadratic").find("degree 2") != std::string::npos);
  CHECK(message("fastmax:denum_term=0").find("denum_term") != std::string::npos);
  CHECK(message("performer:epsilon=-1").find("-1") != std::string::npos);
  CHECK(message("performer:m=-2").find("-2") != std::string::npos);
  const auto largest = made("fastmax:normalise=maxnorm", {.d_model = 4, .causal = true});
  const auto cache = largest->new_cache();
  const Tensor x = random(Shape{1, 1, 4}, 1);
  CHECK_THROWS_WITH(largest->forward({.queries = x, .keys = x, .mask = Mask::causal(), .cache = cache.get()}),
                    Catch::Matchers::Contains("all tokens"));
  const auto wide = made("fastmax:p=20", {.d_model = 64, .causal = true});
  const auto sums = wide->new_cache();
  const Tensor y = random(Shape{1, 1, 64}, 1);
  CHECK_THROWS_WITH(wide->forward({.queries = y, .keys = y, .mask = Mask::causal(), .cache = sums.get()}),
                    Catch::Matchers::Contains("monomials"));
}

}  // namespace heed
