// Tests attention/support/random_projections.h: mean and variance of random features.
#include "heed/attention/support/random_projections.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Numbers = std::vector<double>;

double dot(const double* a, const double* b, size_t n) {
  double total = 0;
  for (size_t c = 0; c < n; ++c) total += a[c] * b[c];
  return total;
}

/// Mean and variance of an estimate over many projections.
struct Moments {
  double mean = 0, variance = 0, error = 0;
};
template <class Estimate>
Moments moments(int draws, Estimate&& estimate) {
  Numbers all;
  for (int n = 0; n < draws; ++n) all.push_back(estimate());
  Moments m;
  for (const double x : all) m.mean += x / draws;
  for (const double x : all) m.variance += (x - m.mean) * (x - m.mean) / (draws - 1);
  m.error = std::sqrt(m.variance / draws);
  return m;
}

const Numbers q{0.5, -0.3, 0.4, 0.1}, k{0.2, 0.6, -0.1, 0.3};
constexpr size_t d = 4;

/// phi(q) . phi(k) by rows of w.
double positive(const Numbers& w, bool both) {
  double total = 0;
  const double halves = (dot(q.data(), q.data(), d) + dot(k.data(), k.data(), d)) / 2;
  for (size_t r = 0; r < w.size(); r += d) {
    const double z = dot(&w[r], q.data(), d) + dot(&w[r], k.data(), d);
    total += both ? std::cosh(z) : std::exp(z);
  }
  return total * std::exp(-halves) / static_cast<double>(w.size() / d);
}
double trigonometric(const Numbers& w) {
  double total = 0;
  const double halves = (dot(q.data(), q.data(), d) + dot(k.data(), k.data(), d)) / 2;
  for (size_t r = 0; r < w.size(); r += d)
    total += std::cos(dot(&w[r], q.data(), d) - dot(&w[r], k.data(), d));
  return total * std::exp(halves) / static_cast<double>(w.size() / d);
}

}  // namespace

TEST_CASE("random projection: orthogonal rows, in groups of d, with the lengths that were asked for") {
  Rng rng(3);
  for (const bool equal : {false, true}) {
    const Numbers w = random_projection(11, 5, {.orthogonal = true, .equal = equal}, rng).to_doubles();
    for (size_t a = 0; a < 11; ++a) {
      for (size_t b = a / 5 * 5; b < a; ++b) CHECK(std::abs(dot(&w[a * 5], &w[b * 5], 5)) < 1e-12);
      if (equal) CHECK(dot(&w[a * 5], &w[a * 5], 5) == Approx(5));
    }
  }
  const Numbers w = random_projection(4000, 5, {.orthogonal = true}, rng).to_doubles();
  double square = 0, fourth = 0;
  for (const double x : w) {
    square += x * x / static_cast<double>(w.size());
    fourth += x * x * x * x / static_cast<double>(w.size());
  }
  CHECK(square == Approx(1).epsilon(0.03));
  CHECK(fourth == Approx(3).epsilon(0.1));
}

TEST_CASE("random projection: mean and variance of the three features are those of the formulas") {
  Rng rng(11);
  const double exact = std::exp(dot(q.data(), k.data(), d));
  Numbers sum, apart;
  for (size_t c = 0; c < d; ++c) {
    sum.push_back(q[c] + k[c]);
    apart.push_back(q[c] - k[c]);
  }
  const double z = dot(sum.data(), sum.data(), d), delta = dot(apart.data(), apart.data(), d);
  const int64_t m = 16;
  const int draws = 8000;
  const auto draw = [&](bool orthogonal) {
    return random_projection(m, static_cast<int64_t>(d), {.orthogonal = orthogonal}, rng).to_doubles();
  };
  struct Kind {
    const char* name;
    std::function<double(const Numbers&)> estimate;
    double variance;  ///< relative, of m independent rows
  };
  for (const Kind& kind :
       {Kind{"positive", [](const Numbers& w) { return positive(w, false); }, std::exp(z) - 1},
        Kind{"hyperbolic", [](const Numbers& w) { return positive(w, true); }, std::cosh(z) - 1},
        Kind{"trigonometric", trigonometric, std::cosh(delta) - 1}}) {
    INFO(kind.name);
    const Moments iid = moments(draws, [&] { return kind.estimate(draw(false)); });
    CHECK(std::abs(iid.mean - exact) < 4 * iid.error);
    CHECK(iid.variance / (exact * exact) == Approx(kind.variance / static_cast<double>(m)).epsilon(0.1));
    const Moments orthogonal = moments(draws, [&] { return kind.estimate(draw(true)); });
    CHECK(std::abs(orthogonal.mean - exact) < 4 * orthogonal.error);
    CHECK(orthogonal.variance < 1.05 * iid.variance);
  }
}

TEST_CASE("random projection: rectified features on a sphere estimate the arc-cosine kernel") {
  Rng rng(13);
  const double lengths = std::sqrt(dot(q.data(), q.data(), d) * dot(k.data(), k.data(), d));
  const double rho = dot(q.data(), k.data(), d) / lengths;
  const double g =
      2 / std::acos(-1.0) * (std::sqrt(1 - rho * rho) + std::abs(rho) * std::asin(std::abs(rho)));
  const Moments m = moments(6000, [&] {
    const Numbers w = random_projection(8, static_cast<int64_t>(d), {.equal = true}, rng).to_doubles();
    double total = 0;
    for (size_t r = 0; r < w.size(); r += d) {
      const double a = dot(&w[r], q.data(), d), b = dot(&w[r], k.data(), d);
      total += a * b > 0 ? a * b : 0;
    }
    return total / 16;
  });
  CHECK(std::abs(m.mean - lengths * (rho + g) / 4) < 4 * m.error);
}

TEST_CASE("random projection: the error of performer falls with the root of its directions", "[performer]") {
  const auto output = [](const std::string& spec, uint64_t seed) {
    Rng rng(seed);
    const auto made = make_attention(spec, {.d_model = 8, .cross = true}, rng);
    convert(*made, DType::f64);
    const NoGrad quiet;
    const auto x = [](uint64_t n) { return battery::numbers(Shape{1, 1, 12, 8}, n, DType::f64) * 0.4; };
    return dynamic_cast<MultiHeadAttention&>(*made).on_heads({x(1), x(2), x(3)}, {}).to_doubles();
  };
  const Numbers exact = output("softmax", 1);
  Numbers logs, errors;
  for (const std::string features : {"positive", "hyperbolic"}) {
    logs.clear();
    for (const int m : {32, 128, 512, 2048}) {
      double square = 0;
      for (uint64_t seed = 0; seed < 24; ++seed) {
        const Numbers y =
            output("performer:epsilon=0,features=" + features + ",m=" + std::to_string(m), 100 + seed);
        for (size_t i = 0; i < y.size(); ++i) square += (y[i] - exact[i]) * (y[i] - exact[i]);
      }
      logs.push_back(std::log(square) / 2);
    }
    const double slope = (logs[3] - logs[0]) / std::log(2048.0 / 32);
    CHECK(slope == Approx(-0.5).margin(0.1));
    errors.push_back(logs[3]);
  }
  CHECK(errors[1] < errors[0]);
}

TEST_CASE("random projection: directions change with the step of training and stay when evaluating",
          "[performer]") {
  Rng rng(1);
  const auto made = make_attention("performer:redraw=10", {.d_model = 4}, rng);
  const Tensor x = battery::numbers(Shape{1, 6, 4}, 2);
  const NoGrad quiet;
  const auto at = [&](int64_t tick, bool trains) {
    Rng noise(9);
    noise.restore(tick, 0);
    return made->forward({.queries = x, .keys = x, .context = {.rng = trains ? &noise : nullptr}})
        .to_doubles();
  };
  const Numbers first = at(0, true);
  CHECK(at(9, true) == first);
  const Numbers second = at(10, true);
  CHECK(second != first);
  CHECK(at(57, false) == second);
  CHECK(at(19, true) == second);
  const Numbers third = at(25, true);
  CHECK(third != second);
  CHECK(at(12, true) == second);  // the step decides
}

}  // namespace heed
