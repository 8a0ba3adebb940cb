// Attention kernels on every device against the CPU, for cases without a reference in plain loops: shared key
// heads, relative biases, sinks, caps, wide rows, rounded products.
#include <cmath>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/isa.h"
#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/linear_attention/polynomial_backward.h"
#include "heed/core/kernels/linear_attention/polynomial_sums.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention/run_attention.h"

namespace heed {
namespace {

using kernel::AttentionParams;
using test::blank_like;
using test::distance;
using test::heads;

struct Sizes {
  int64_t B, H, Hk, Tq, Tk, d, dv;
};

struct Inputs {
  Tensor q, k, v, dout;
  Inputs(const Sizes& s, DType dtype)
      : q(heads(s.B, s.H, s.Tq, s.d, dtype, 1)),
        k(heads(s.B, s.Hk, s.Tk, s.d, dtype, 2)),
        v(heads(s.B, s.Hk, s.Tk, s.dv, dtype, 3)),
        dout(heads(s.B, s.H, s.Tq, s.dv, dtype, 4)) {}
};

test::HeadOutputs run(Device device, const Inputs& x, const AttentionParams& params) {
  const bool trained = params.relative && params.softcap == 0;
  return test::run_attention_on<kernel::Attention, kernel::AttentionBack>(
      device, x, params, trained ? empty_like(params.relative) : Tensor());
}

/// Largest difference from the CPU's, relative to the largest number where that is above one.
double apart(const Tensor& found, const Tensor& wanted) {
  if (!wanted) return 0;
  double largest = 1;
  for (const double x : wanted.to_doubles())
    largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  double maximum = 0;
  const auto a = found.to_doubles(), b = wanted.to_doubles();
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    maximum = std::isfinite(a[i]) ? std::max(maximum, std::abs(a[i] - b[i]) / largest) : HUGE_VAL;
  }
  return maximum;
}

void compare(const Inputs& x, const AttentionParams& params, double near) {
  AttentionParams exact = params;
  exact.rounding = Rounding::none;
  const test::HeadOutputs want = run(Device::cpu, x, exact), y = run(device_here(), x, params);
  CHECK(apart(y.out, want.out) < near);
  CHECK(apart(y.lse, want.lse) < near);
  CHECK(apart(y.dq, want.dq) < near);
  CHECK(apart(y.dk, want.dk) < near);
  CHECK(apart(y.dv, want.dv) < near);
  CHECK(apart(y.drelative, want.drelative) < near);
}

double near_of(DType dtype) { return dtype == DType::f64 ? 1e-12 : 1e-5; }

Draw some_draw() {
  return {.seed = 77, .stream = 5, .tick = Tensor::of<int64_t>(std::vector<int64_t>{3}, {1})};
}

Tensor lengths(const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(values, {static_cast<int64_t>(values.size())});
}

}  // namespace

TEST_CASE("attention on devices: heads that share keys, relative biases, sinks and caps") {
  const OnEachDevice here;
  const Sizes s{2, 4, 2, 70, 90, 24, 16};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Inputs x(s, dtype);
    const Tensor relative = test::tensor(test::numbers(4 * 159, 7), {4, 159}, dtype),
                 sink = test::tensor(test::numbers(4, 8), {4}, dtype);
    for (const bool causal : {false, true}) {
      INFO("causal " << causal << " " << to_string(dtype));
      const AttentionParams plain{
          .scale = 0.4, .causal = causal, .first_query = 20, .key_lengths = lengths({90, 33})};
      compare(x, plain, near_of(dtype));
      AttentionParams params = plain;
      params.relative = relative;
      compare(x, params, near_of(dtype));
      params.sink = sink;
      params.dropout = 0.2;
      params.draw = some_draw();
      compare(x, params, near_of(dtype));
      params.softcap = 0.5;
      compare(x, params, near_of(dtype));
    }
  }
}

TEST_CASE("attention on devices: a sink counts once where the keys of a query are split") {
  const OnEachDevice here;
  const Sizes s{2, 4, 2, 2, 900, 24, 16};
  for (const DType dtype : {DType::f32, DType::f64}) {
    AttentionParams params{
        .scale = 0.4, .causal = true, .first_query = 898, .key_lengths = lengths({0, 700})};
    params.sink = test::tensor(test::numbers(4, 8), {4}, dtype);
    compare(Inputs(s, dtype), params, near_of(dtype));
    params.relative = test::tensor(test::numbers(4 * 901, 7), {4, 901}, dtype);
    params.softcap = 0.5;
    compare(Inputs(s, dtype), params, near_of(dtype));
  }
}

TEST_CASE("attention on devices: rows wider than a tile") {
  const OnEachDevice here;
  for (const Sizes& s : {Sizes{1, 2, 1, 70, 67, 100, 100}, Sizes{1, 1, 1, 40, 70, 130, 20},
                         Sizes{1, 1, 1, 66, 66, 40, 300}, Sizes{1, 1, 1, 20, 20, 257, 131}}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      INFO("d " << s.d << " dv " << s.dv << " " << to_string(dtype));
      compare(Inputs(s, dtype), {.scale = 0.1, .causal = true, .first_query = 5}, near_of(dtype));
    }
  }
}

TEST_CASE("attention on devices: rounded products differ by their rounding") {
  const OnEachDevice here;
  // Factors keep 8 bits, or 11; numbers are below one and rows have up to 128 of them.
  const Rounding rounding = GENERATE(Rounding::bf16, Rounding::tf32);
  const double near = rounding == Rounding::bf16 ? 0.02 : 0.003;
  CAPTURE(near);
  for (const Sizes& s :
       {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{2, 4, 2, 70, 90, 24, 16}, Sizes{1, 2, 2, 200, 200, 64, 64},
        Sizes{1, 2, 1, 130, 65, 100, 128}, Sizes{1, 1, 1, 3, 150, 33, 5}}) {
    for (const bool causal : {false, true}) {
      INFO("Tq " << s.Tq << " Tk " << s.Tk << " d " << s.d << " dv " << s.dv << " causal " << causal);
      AttentionParams params{
          .scale = 0.3, .causal = causal, .first_query = causal ? s.Tk - s.Tq : 0, .rounding = rounding};
      compare(Inputs(s, DType::f32), params, near);
      params.key_lengths =
          lengths(std::vector<int32_t>(static_cast<size_t>(s.B), static_cast<int32_t>(s.Tk / 2)));
      params.dropout = 0.25;
      params.draw = some_draw();
      compare(Inputs(s, DType::f32), params, near);
      params.sink = test::tensor(test::numbers(s.H, 8), {s.H}, DType::f32);
      params.bias = test::tensor(test::numbers(s.Tq * s.Tk, 9), {1, 1, s.Tq, s.Tk}, DType::f32);
      compare(Inputs(s, DType::f32), params, near);
      params.relative =
          test::tensor(test::numbers(s.H * (s.Tq + s.Tk - 1), 6), {s.H, s.Tq + s.Tk - 1}, DType::f32);
      compare(Inputs(s, DType::f32), params, 4 * near);  // its gradients sum those of up to 140 scores
    }
  }
}

TEST_CASE("attention on devices: bf16 rounds factors, neither scores nor sums") {
  const OnEachDevice here;
  const Sizes s{2, 4, 2, 150, 140, 40, 24};
  Inputs x(s, DType::f32);
  const AttentionParams exact{.scale = 0.3};
  AttentionParams params = exact;
  params.rounding = Rounding::bf16;
  const bool rounds = device_here() != Device::cpu || has_amx();
  CHECK((apart(run(device_here(), x, params).lse, run(Device::cpu, x, exact).lse) > 1e-4) == rounds);
  // Rounded heads lose nothing, so that scores are exact; each weight is then rounded by 2^-9 of itself.
  for (const Tensor& t : {x.q, x.k, x.v, x.dout}) {
    float* values = t.data<float>();
    for (int64_t i = 0; i < t.size(); ++i) values[i] = bf16(values[i]);
  }
  const test::HeadOutputs y = run(device_here(), x, params), want = run(Device::cpu, x, exact);
  // Tensor cores cut off what their sums leave behind.
  CHECK(apart(y.lse, want.lse) < (device_here() == Device::cpu || cuda::emulated ? 2e-6 : 1e-4));
  CHECK(apart(y.out, want.out) < 1.0 / 512);
  CHECK((apart(y.out, want.out) > 1e-6) == rounds);
}

TEST_CASE("attention on devices: the tensor cores' products are exact where rounding changes nothing") {
  const OnEachDevice here;
  // Small whole numbers are exact in bf16 and tf32, and with one key for each query so is its weight.
  const Sizes s{1, 2, 2, 70, 70, 48, 40};
  Inputs x(s, DType::f32);
  for (const Tensor& t : {x.q, x.k, x.v, x.dout}) {
    float* values = t.data<float>();
    for (int64_t i = 0; i < t.size(); ++i) values[i] = std::round(3 * values[i]);
  }
  AttentionParams params{.scale = 0.05, .rounding = GENERATE(Rounding::bf16, Rounding::tf32)};
  std::vector<double> own(70 * 70, -std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < 70; ++i) own[i * 70 + i * 29 % 70] = 0;
  params.bias = test::tensor(own, {1, 1, 70, 70}, DType::f32);
  AttentionParams exact = params;
  exact.rounding = Rounding::none;
  const test::HeadOutputs y = run(device_here(), x, params), want = run(Device::cpu, x, exact);
  CHECK(y.out.to_doubles() == want.out.to_doubles());
  CHECK(apart(y.lse, want.lse) < 1e-6);
  CHECK(apart(y.dv, want.dv) < 1e-6);
}

TEST_CASE("attention on devices: scales of any sign, with rounded products") {
  const OnEachDevice here;
  // Whole numbers are exact in bf16 and tf32, so that scores are those of the CPU.
  const Sizes s{1, 2, 2, 140, 140, 48, 40};
  Inputs x(s, DType::f32);
  for (const Tensor& t : {x.q, x.k, x.v}) {
    float* values = t.data<float>();
    for (int64_t i = 0; i < t.size(); ++i) values[i] = std::round(3 * values[i]);
  }
  const bool causal = GENERATE(false, true);
  const Rounding rounding = GENERATE(Rounding::bf16, Rounding::tf32);
  for (const double scale : {0.01, -0.01, 0.0, 1e-25}) {
    INFO("scale " << scale << " causal " << causal);
    const AttentionParams exact{.scale = scale, .causal = causal, .rounding = Rounding::none};
    AttentionParams params = exact;
    params.rounding = rounding;
    const test::HeadOutputs y = run(device_here(), x, params), want = run(Device::cpu, x, exact);
    CHECK(apart(y.out, want.out) < 0.02);
    CHECK(apart(y.lse, want.lse) < 1e-6);
  }
}

namespace {

/// PolynomialAttention on a device and on the CPU, with what is dropped the same.
struct FastmaxOutputs {
  Tensor out, sums, dq, dk, dv, state, dstate;
};

FastmaxOutputs polynomial_attention(Device device, const Inputs& x, const kernel::PolynomialParams& params) {
  const int64_t features = kernel::num_polynomial_features(x.k.extent(3), params.coefficients),
                columns = x.v.extent(3) + 1;
  const Tensor none;
  FastmaxOutputs y{.out = blank_like(x.dout),
                   .sums = Tensor({x.q.extent(0), x.q.extent(1), x.q.extent(2)}, x.q.dtype()),
                   .dq = blank_like(x.q),
                   .dk = blank_like(x.k),
                   .dv = blank_like(x.v),
                   .state = Tensor::zeros({x.q.extent(0), x.q.extent(1), features, columns}, x.q.dtype()),
                   .dstate = Tensor::zeros({x.q.extent(0), x.q.extent(1), features, columns}, x.q.dtype())};
  launch_on<kernel::PolynomialSums>(device, x.k, x.v, params, y.state);
  if (params.causal) {
    launch_on<kernel::PolynomialAttention>(
        device, kernel::PolynomialInputs{.q = x.q, .k = x.k, .v = x.v, .start = y.state}, params, y.out,
        y.sums);
    launch_on<kernel::PolynomialAttentionBack>(
        device, kernel::PolynomialInputs{.q = x.q, .k = x.k, .v = x.v, .start = y.state}, params, y.out,
        y.sums, x.dout, kernel::PolynomialInputs{.q = y.dq, .k = y.dk, .v = y.dv, .start = y.dstate});
    return y;
  }
  launch_on<kernel::PolynomialAttention>(
      device, kernel::PolynomialInputs{.q = x.q, .k = none, .v = none, .start = y.state}, params, y.out,
      y.sums);
  launch_on<kernel::PolynomialAttentionBack>(
      device, kernel::PolynomialInputs{.q = x.q, .k = none, .v = none, .start = y.state}, params, y.out,
      y.sums, x.dout, kernel::PolynomialInputs{.q = y.dq, .k = none, .v = none, .start = y.dstate});
  launch_on<kernel::PolynomialSumsBack>(device, x.k, x.v, params, y.dstate, y.dk, y.dv);
  return y;
}

}  // namespace

TEST_CASE("fastmax on devices: dropped monomials and sums that come from before are those of the CPU") {
  const OnEachDevice here;
  for (const std::vector<double>& coefficients : {std::vector<double>{1, 1, 0.5}, {0.5, 0.3, 0.2, 0.1}}) {
    for (const bool causal : {false, true}) {
      for (const double dropout : {0.0, 0.3}) {
        INFO("degree " << coefficients.size() - 1 << " causal " << causal << " dropout " << dropout);
        if constexpr (built_with_cuda) {  // f64 with dropout takes more than every device has
          if (device_here() == Device::cuda && dropout > 0 && cuda::max_shared_bytes() < 195'072) continue;
        }
        const Inputs x({2, 1, 1, 150, 150, 6, 7}, DType::f64);
        const kernel::PolynomialParams params{.coefficients = coefficients,
                                              .prepare = kernel::FeatureMap::unit,
                                              .causal = causal,
                                              .key_lengths = lengths({150, 70}),
                                              .epsilon = 5,
                                              .dropout = dropout,
                                              .draw = some_draw(),
                                              .path = kernel::PolynomialPath::factored};
        const FastmaxOutputs y = polynomial_attention(device_here(), x, params),
                             want = polynomial_attention(Device::cpu, x, params);
        CHECK(apart(y.state, want.state) < 1e-12);
        CHECK(apart(y.out, want.out) < 1e-12);
        CHECK(apart(y.sums, want.sums) < 1e-12);
        CHECK(apart(y.dq, want.dq) < 1e-12);
        CHECK(apart(y.dk, want.dk) < 1e-12);
        CHECK(apart(y.dv, want.dv) < 1e-12);
        CHECK(apart(y.dstate, want.dstate) < 1e-12);
      }
    }
  }
}

TEST_CASE("fastmax on devices: heads wider than a tile of rows") {
  const OnEachDevice here;
  for (const Sizes& s : {Sizes{1, 1, 1, 70, 70, 140, 5}, Sizes{1, 1, 1, 70, 70, 12, 100}}) {
    INFO("d " << s.d << " dv " << s.dv);
    const Inputs x(s, DType::f32);
    const kernel::PolynomialParams params{.coefficients = {1, 1, 0.5},
                                          .prepare = kernel::FeatureMap::unit,
                                          .causal = true,
                                          .path = kernel::PolynomialPath::factored};
    const FastmaxOutputs y = polynomial_attention(device_here(), x, params),
                         want = polynomial_attention(Device::cpu, x, params);
    CHECK(apart(y.out, want.out) < 1e-5);
    CHECK(apart(y.dq, want.dq) < 1e-5);
    CHECK(apart(y.dk, want.dk) < 1e-5);
    CHECK(apart(y.dv, want.dv) < 1e-5);
    CHECK(apart(y.dstate, want.dstate) < 1e-5);
  }
}

}  // namespace heed
