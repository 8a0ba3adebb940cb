// Tests core/kernels/linear_attention/polynomial_attention.h and its gradients against double loops over
// pairs.
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "heed/core/kernels/linear_attention/polynomial_backward.h"
#include "heed/core/kernels/linear_attention/polynomial_sums.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention_arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using kernel::FeatureMap;
using kernel::PolynomialParams;
using kernel::PolynomialPath;
using test::blank_like;
using test::distance;
using Numbers = std::vector<double>;

using Sizes = test::HeadSizes;
using Inputs = test::HeadInputs;

struct Outputs {
  Tensor out, dq, dk, dv;
};

Tensor fresh(const Tensor& empty_like, int64_t features, int64_t columns) {
  return Tensor::full(Shape{empty_like.extent(0), empty_like.extent(1), features, columns}, std::nan(""),
                      empty_like.dtype());
}

/// What the op does, by kernels: pairs, the causal form, or sums and a call upon them.
Outputs run(const Inputs& x, const PolynomialParams& params) {
  Outputs y{blank_like(x.dout), blank_like(x.q), blank_like(x.k), blank_like(x.v)};
  const Tensor none, sums(Shape{x.q.extent(0), x.q.extent(1), x.q.extent(2)}, x.q.dtype());
  if (params.causal || kernel::prefers_dense_polynomial(x.k.extent(2), x.k.extent(3), params)) {
    launch_here<kernel::PolynomialAttention>(
        kernel::PolynomialInputs{.q = x.q, .k = x.k, .v = x.v, .start = none}, params, y.out, sums);
    launch_here<kernel::PolynomialAttentionBack>(
        kernel::PolynomialInputs{.q = x.q, .k = x.k, .v = x.v, .start = none}, params, y.out, sums, x.dout,
        kernel::PolynomialInputs{.q = y.dq, .k = y.dk, .v = y.dv, .start = none});
    return y;
  }
  const int64_t features = kernel::num_polynomial_features(x.k.extent(3), params.coefficients);
  const Tensor state = fresh(x.q, features, x.v.extent(3) + 1),
               dstate = fresh(x.q, features, x.v.extent(3) + 1);
  launch_here<kernel::PolynomialSums>(x.k, x.v, params, state);
  launch_here<kernel::PolynomialAttention>(
      kernel::PolynomialInputs{.q = x.q, .k = none, .v = none, .start = state}, params, y.out, sums);
  launch_here<kernel::PolynomialAttentionBack>(
      kernel::PolynomialInputs{.q = x.q, .k = none, .v = none, .start = state}, params, y.out, sums, x.dout,
      kernel::PolynomialInputs{.q = y.dq, .k = none, .v = none, .start = dstate});
  launch_here<kernel::PolynomialSumsBack>(x.k, x.v, params, dstate, y.dk, y.dv);
  return y;
}

/// Rows of a matrix as they meet, and how gradients come back to them.
struct Prepared {
  Numbers x, inverse;
  Prepared(const Tensor& from, const PolynomialParams& params) : x(from.to_doubles()), inverse(x.size(), 1) {
    const size_t d = static_cast<size_t>(from.extent(3));
    for (size_t row = 0; row < x.size(); row += d) {
      double mean = 0, square = 0;
      for (size_t a = 0; a < d; ++a) mean += x[row + a] / static_cast<double>(d);
      if (params.prepare == FeatureMap::unit) mean = 0;
      for (size_t a = 0; a < d; ++a) square += (x[row + a] - mean) * (x[row + a] - mean);
      const double e = params.prepare_epsilon;
      for (size_t a = 0; a < d; ++a) {
        double& value = x[row + a];
        if (params.prepare == FeatureMap::positive) {
          inverse[row + a] = value > 0 ? 1 : std::exp(value);
          value = value > 0 ? value + 1 : std::exp(value);
        } else if (params.prepare != FeatureMap::none) {
          const double inside =
              params.prepare == FeatureMap::unit ? square + e * e : square / static_cast<double>(d) + e;
          inverse[row + a] = 1 / std::sqrt(inside);
          value = (value - mean) * inverse[row + a];
        }
      }
    }
  }
  Numbers back(Numbers slope, size_t d, FeatureMap how) const {
    for (size_t row = 0; row < x.size(); row += d) {
      double mean = 0, along = 0;
      for (size_t a = 0; a < d; ++a) {
        mean += slope[row + a] / static_cast<double>(d);
        along += slope[row + a] * x[row + a];
      }
      for (size_t a = 0; a < d; ++a) {
        double& s = slope[row + a];
        if (how == FeatureMap::standard) s -= mean + x[row + a] * along / static_cast<double>(d);
        if (how == FeatureMap::unit) s -= x[row + a] * along;
        s *= inverse[row + a];
      }
    }
    return slope;
  }
};

struct Plain {
  Numbers out, dq, dk, dv;
};

Plain plainly(const Inputs& x, const PolynomialParams& params) {
  const int64_t B = x.q.extent(0), H = x.q.extent(1), Tq = x.q.extent(2), Tk = x.k.extent(2),
                d = x.q.extent(3), dv = x.v.extent(3);
  const Prepared q(x.q, params), k(x.k, params);
  const Numbers v = x.v.to_doubles(), g = x.dout.to_doubles();
  Plain r{Numbers(g.size()), Numbers(q.x.size()), Numbers(k.x.size()), Numbers(v.size())};
  const auto f = [&](double s) {
    double y = 0, slope = 0, power = 1;
    for (size_t l = 0; l < params.coefficients.size(); ++l) {
      y += params.coefficients[l] * power;
      if (l + 1 < params.coefficients.size())
        slope += params.coefficients[l + 1] * static_cast<double>(l + 1) * power;
      power *= s;
    }
    return std::pair{y, slope};
  };
  for (int64_t bh = 0; bh < B * H; ++bh) {
    const int64_t keys =
        params.key_lengths ? params.key_lengths.data<int32_t>()[bh / H] - params.first_key : Tk;
    for (int64_t i = 0; i < Tq; ++i) {
      const int64_t seen = std::clamp<int64_t>(params.causal ? std::min(keys, i + 1) : keys, 0, Tk);
      Numbers weight, slope;
      double total = params.epsilon, along = 0;
      const size_t qi = static_cast<size_t>((bh * Tq + i) * d), gi = static_cast<size_t>((bh * Tq + i) * dv);
      const auto kj = [&](int64_t j) { return static_cast<size_t>((bh * Tk + j) * d); };
      const auto vj = [&](int64_t j) { return static_cast<size_t>((bh * Tk + j) * dv); };
      for (int64_t j = 0; j < seen; ++j) {
        double s = 0;
        for (size_t a = 0; a < static_cast<size_t>(d); ++a) s += params.scale * q.x[qi + a] * k.x[kj(j) + a];
        weight.push_back(f(s).first);
        slope.push_back(f(s).second);
        total += weight.back();
      }
      const bool held = std::abs(total) < params.guard;
      if (held) total = std::copysign(params.guard, total);
      if (seen == 0) continue;
      for (int64_t j = 0; j < seen; ++j) {
        for (size_t c = 0; c < static_cast<size_t>(dv); ++c)
          r.out[gi + c] += weight[static_cast<size_t>(j)] / total * v[vj(j) + c];
      }
      for (size_t c = 0; c < static_cast<size_t>(dv); ++c) along += held ? 0 : g[gi + c] * r.out[gi + c];
      for (int64_t j = 0; j < seen; ++j) {
        double dw = -along;
        for (size_t c = 0; c < static_cast<size_t>(dv); ++c) {
          dw += g[gi + c] * v[vj(j) + c];
          r.dv[vj(j) + c] += weight[static_cast<size_t>(j)] / total * g[gi + c];
        }
        const double ds = params.scale * dw / total * slope[static_cast<size_t>(j)];
        for (size_t a = 0; a < static_cast<size_t>(d); ++a) {
          r.dq[qi + a] += ds * k.x[kj(j) + a];
          r.dk[kj(j) + a] += ds * q.x[qi + a];
        }
      }
    }
  }
  r.dq = q.back(r.dq, static_cast<size_t>(d), params.prepare);
  r.dk = k.back(r.dk, static_cast<size_t>(d), params.prepare);
  return r;
}

void compare(const Sizes& s, const PolynomialParams& params, DType dtype, double near) {
  CAPTURE(s.B, s.H, s.Tq, s.Tk, s.d, s.dv, params.coefficients, params.causal,
          static_cast<int>(params.prepare), static_cast<int>(params.path), params.chunk,
          static_cast<bool>(params.key_lengths), to_string(dtype));
  const Inputs x(s, dtype);
  const Outputs y = run(x, params);
  const Plain want = plainly(x, params);
  CHECK(distance(y.out, want.out) < near);
  CHECK(distance(y.dq, want.dq) < near);
  CHECK(distance(y.dk, want.dk) < near);
  CHECK(distance(y.dv, want.dv) < near);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

const std::vector<Numbers> degrees{
    {1}, {1, 1}, {1, 1, 0.5}, {1, 1, 0.5, 1.0 / 6}, {0.7, 0.3, 0.2, 0.1, 0.05}};

Tensor lengths(const Sizes& s) {
  std::vector<int32_t> of;
  for (int64_t b = 0; b < s.B; ++b) of.push_back(static_cast<int32_t>(b == 0 ? s.Tk : s.Tk * (3 - b) / 4));
  return Tensor::of<int32_t>(of, Shape{s.B});
}

}  // namespace

TEST_CASE("fastmax kernel: equals double loops for every degree, path and chunk") {
  const OnEachDevice here;
  for (const Numbers& coefficients : degrees) {
    for (const bool causal : {false, true}) {
      for (const Sizes& s : {Sizes{1, 1, 1, 1, 1, 1}, Sizes{1, 2, 2, 2, 3, 2}, Sizes{2, 2, 17, 17, 4, 7},
                             Sizes{4, 1, 131, 131, 5, 16}, Sizes{3, 1, 70, causal ? 70 : 43, 3, 17}}) {
        for (const PolynomialPath path : {PolynomialPath::factored, PolynomialPath::dense}) {
          for (const int64_t chunk : {0, 16, 128}) {
            for (const bool padded : {false, true}) {
              const PolynomialParams params{.coefficients = coefficients,
                                            .scale = 0.8,
                                            .causal = causal,
                                            .key_lengths = padded ? lengths(s) : Tensor(),
                                            .epsilon = 0.25,
                                            .path = path,
                                            .chunk = chunk};
              compare(s, params, DType::f64, 1e-11);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("fastmax kernel: every way to prepare queries and keys, in both precisions") {
  const OnEachDevice here;
  for (const FeatureMap prepare :
       {FeatureMap::none, FeatureMap::standard, FeatureMap::unit, FeatureMap::positive}) {
    for (const Numbers& coefficients :
         {Numbers{0, 1}, Numbers{1, 1, 0.5}, Numbers{0.5, 0, 2}, Numbers{0, 0, 1, 0.5}}) {
      for (const bool causal : {false, true}) {
        for (const PolynomialPath path : {PolynomialPath::factored, PolynomialPath::dense}) {
          const PolynomialParams params{.coefficients = coefficients,
                                        .prepare = prepare,
                                        .scale = prepare == FeatureMap::standard ? -0.2 : 0.6,
                                        .causal = causal,
                                        .epsilon = 300,  // sums of signed weights may vanish without it
                                        .path = path};
          const Sizes s = is_emulated() ? Sizes{2, 1, 70, 70, 6, 5} : Sizes{2, 2, 100, 100, 6, 5};
          compare(s, params, DType::f64, 1e-11);
          compare(s, params, DType::f32, 1e-4);
        }
      }
    }
  }
}

TEST_CASE("fastmax kernel: few long heads, cut into segments") {
  const OnEachDevice here;
  const int64_t T = is_emulated() ? 1100 : 4500;
  for (const bool causal : {false, true}) {
    compare({1, 2, T, T, 3, 5},
            {.coefficients = {1, 1, 0.5}, .prepare = FeatureMap::standard, .causal = causal}, DType::f64,
            1e-9);
    compare({2, 1, T, T, 3, 5},
            {.coefficients = {1, 1, 0.5},
             .prepare = FeatureMap::standard,
             .causal = causal,
             .key_lengths = lengths({2, 1, T, T, 3, 5})},
            DType::f64, 1e-9);
  }
}

TEST_CASE("fastmax kernel: a sum near zero is moved out to the guard and gets no gradient") {
  const OnEachDevice here;
  const PolynomialParams params{.coefficients = {1, 1}, .scale = 4, .causal = true, .guard = 2.5};
  compare({2, 1, 40, 40, 3, 4}, params, DType::f64, 1e-11);
}

TEST_CASE("fastmax kernel: features are counted as binomials") {
  CHECK(kernel::num_polynomial_features(32, {1, 1, 0.5}) == 561);
  CHECK(kernel::num_polynomial_features(64, {1, 1, 0.5}) == 2145);
  CHECK(kernel::num_polynomial_features(32, {1, 1}) == 33);
  CHECK(kernel::num_polynomial_features(32, {0, 1}) == 32);
  CHECK(kernel::num_polynomial_features(5, {1, 0, 1, 1}) == 1 + 15 + 35);
  CHECK(kernel::num_polynomial_features(8, Numbers(13, 1)) == 125970);
  CHECK(kernel::num_polynomial_features(7, {1}) == 1);
  CHECK(kernel::num_polynomial_features(1000, Numbers(30, 1)) == int64_t{1} << 50);
}

TEST_CASE("fastmax kernel: the same bits with any number of threads") {
  const int before = threads();
  for (const bool causal : {false, true}) {
    for (const Sizes& s : {Sizes{1, 1, 9000, 9000, 4, 4}, Sizes{3, 5, 700, 700, 16, 16}}) {
      const Inputs x(s, DType::f32);
      const PolynomialParams params{
          .coefficients = {1, 1, 0.5}, .prepare = FeatureMap::standard, .causal = causal};
      set_threads(1);
      const Outputs one = run(x, params);
      for (const int count : {2, 3, 8}) {
        set_threads(count);
        const Outputs many = run(x, params);
        CHECK(same_bits(one.out, many.out));
        CHECK(same_bits(one.dq, many.dq));
        CHECK(same_bits(one.dk, many.dk));
        CHECK(same_bits(one.dv, many.dv));
      }
    }
  }
  set_threads(before);
}

TEST_CASE("fastmax kernel: memory holds no pairs and no monomials of tokens") {
  const int before = threads();
  set_threads(1);
  const int64_t length = 8192, d = 32;
  for (const bool causal : {false, true}) {
    const Inputs x({1, 4, length, length, d, d}, DType::f32);
    const PolynomialParams params{
        .coefficients = {1, 1, 0.5}, .prepare = FeatureMap::standard, .causal = causal};
    reset_peak();
    const int64_t live = memory_use().live;
    Count::reset();
    run(x, params);
    const int64_t used = memory_use().peak - live, tensor = 4 * length * d * 4;
    CHECK(used <
          4 * tensor + 4 * length * 4 + (int64_t{6} << 20));  // out, dq, dk, dv, sums, states and scratch
    CHECK(used < length * length);
    CHECK(Count::flops().load() > 5.9 * 2 * 4 * length * 561 * d);
    CHECK(Count::flops().load() < 9 * 2 * 4 * length * 561 * (d + 1));
  }
  set_threads(before);
}

}  // namespace heed
