// Fastmax kernels on packed sequences: bit for bit what they compute on padded rows, on every device, near
// what the CPU computes, and without a touch of rows that belong to no sequence.
#include "heed/core/kernels/linear_attention/polynomial_backward.h"
#include "heed/core/kernels/linear_attention/polynomial_sums.h"
#include "heed/tests/core/kernels/attention_arguments_on_device.h"
#include "heed/tests/core/kernels/packed_rows.h"
#include "heed/tests/core/numbers.h"

namespace heed {
namespace {

using kernel::PolynomialDropout;
using kernel::PolynomialInputs;
using kernel::PolynomialParams;
using kernel::PolynomialPath;
using test::blank_like;
using test::Lengths;

struct FastmaxSizes {
  int64_t Tq, Tk, d, dv;
  Lengths queries, keys;     ///< rows of each sequence; empty: padded
  Lengths key_lengths = {};  ///< empty: none
};

struct FastmaxResults {
  Tensor out, sums, dq, dk, dv, state, dstate;
};

constexpr int64_t num_heads = 2;

/// The dense form; the causal one, upon sums over the same keys; or sums over keys and a call upon them.
FastmaxResults run_fastmax(Device device, const test::HeadInputs& x, const PolynomialParams& params,
                           int64_t B, int64_t Tq) {
  const DType dtype = x.q.dtype();
  const auto blank = [&](const Shape& shape) { return Tensor::full(shape, std::nan(""), dtype); };
  FastmaxResults y{.out = blank_like(x.dout),
                   .sums = blank(Shape{B, num_heads, Tq}),
                   .dq = blank_like(x.q),
                   .dk = blank_like(x.k),
                   .dv = blank_like(x.v),
                   .state = {},
                   .dstate = {}};
  const bool dense = params.path == PolynomialPath::dense;
  if (!dense) {
    const Shape of_state{B, num_heads, kernel::num_polynomial_features(x.k.extent(3), params.coefficients),
                         x.v.extent(3) + 1};
    y.state = blank(of_state);
    y.dstate = blank(of_state);
    launch_on<kernel::PolynomialSums>(device, x.k, x.v, params, y.state);
  }
  const bool has_keys = dense || params.causal;
  const Tensor none;
  launch_on<kernel::PolynomialAttention>(
      device,
      PolynomialInputs{.q = x.q, .k = has_keys ? x.k : none, .v = has_keys ? x.v : none, .start = y.state},
      params, y.out, y.sums);
  launch_on<kernel::PolynomialAttentionBack>(
      device,
      PolynomialInputs{.q = x.q, .k = has_keys ? x.k : none, .v = has_keys ? x.v : none, .start = y.state},
      params, y.out, y.sums, x.dout,
      PolynomialInputs{
          .q = y.dq, .k = has_keys ? y.dk : none, .v = has_keys ? y.dv : none, .start = y.dstate});
  if (!has_keys) launch_on<kernel::PolynomialSumsBack>(device, x.k, x.v, params, y.dstate, y.dk, y.dv);
  return y;
}

/// Packed on this device: equal to padded, and near packed on the CPU.
void compare_packed(const FastmaxSizes& s, PolynomialParams params, DType dtype) {
  CAPTURE(s.Tq, s.Tk, s.queries, s.keys, s.key_lengths, params.coefficients, params.causal, params.dropout,
          static_cast<int>(params.drops), static_cast<int>(params.path), to_string(dtype));
  const test::PackedSizes sizes{num_heads, num_heads, s.Tq,   s.Tk,         s.d,
                                s.dv,      s.queries, s.keys, s.key_lengths};
  const int64_t B = sizes.batch();
  const test::PaddedAndPacked call(sizes, params, dtype);
  params = call.packed_params;
  const FastmaxResults y = run_fastmax(device_here(), call.packed, params, B, s.Tq),
                       same = run_fastmax(device_here(), call.padded, call.padded_params, B, s.Tq);
  CHECK(distance(y.out, test::packed_heads(same.out, params.queries)) == 0);
  CHECK(distance(y.sums, test::frame_of(same.sums, params.queries)) == 0);
  CHECK(distance(y.dq, test::packed_heads(same.dq, params.queries)) == 0);
  CHECK(distance(y.dk, test::packed_heads(same.dk, params.keys)) == 0);
  CHECK(distance(y.dv, test::packed_heads(same.dv, params.keys)) == 0);
  if (y.state) {
    CHECK(distance(y.state, same.state) == 0);
    CHECK(distance(y.dstate, same.dstate) == 0);
  }
  if (device_here() == Device::cpu) return;
  const FastmaxResults want = run_fastmax(Device::cpu, call.packed, params, B, s.Tq);
  const double near = 20 * tolerance(dtype);
  CHECK(distance(y.out, want.out) < near);
  CHECK(distance(y.dq, want.dq) < near);
  CHECK(distance(y.dk, want.dk) < near);
  CHECK(distance(y.dv, want.dv) < near);
}

const Lengths some_lengths{140, 66, 0, 9}, other_lengths{100, 0, 33, 1};
const FastmaxSizes same_rows{140, 140, 4, 7, some_lengths, some_lengths},
    with_key_lengths{140, 140, 3, 9, some_lengths, some_lengths, {140, 40, 0, 0}};

PolynomialParams params_of(const std::vector<double>& coefficients, PolynomialPath path, bool causal) {
  return {.coefficients = coefficients,
          .prepare = kernel::FeatureMap::unit,
          .causal = causal,
          .epsilon = 5,
          .path = path};
}

}  // namespace

TEST_CASE("packed fastmax: as padded rows, for each degree and path") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  for (const std::vector<double>& coefficients :
       {std::vector<double>{1, 1}, {1, 1, 0.5}, {0.5, 0.3, 0.2, 0.1}}) {
    for (const PolynomialPath path : {PolynomialPath::factored, PolynomialPath::dense}) {
      const PolynomialParams cross = params_of(coefficients, path, /*causal=*/false);
      compare_packed(same_rows, params_of(coefficients, path, /*causal=*/true), dtype);
      compare_packed(with_key_lengths, cross, dtype);
      if (coefficients.size() != 3) continue;
      compare_packed({140, 100, 3, 7, some_lengths, other_lengths}, cross, dtype);
      compare_packed({140, 70, 3, 7, some_lengths, {}, {70, 3, 0, 50}}, cross, dtype);
      compare_packed({20, 100, 3, 7, {}, other_lengths, {100, 0, 20, 1}}, cross, dtype);
    }
  }
}

TEST_CASE("packed fastmax: as padded rows, whatever is dropped") {
  const OnEachDevice here;
  for (const PolynomialDropout drops :
       {PolynomialDropout::monomials, PolynomialDropout::entries, PolynomialDropout::tokens}) {
    for (const PolynomialPath path : {PolynomialPath::factored, PolynomialPath::dense}) {
      if (drops == PolynomialDropout::monomials && path == PolynomialPath::dense) continue;
      for (const bool causal : {false, true}) {
        PolynomialParams params = params_of({1, 1, 0.5}, path, causal);
        params.dropout = 0.3;
        params.drops = drops;
        params.draw = {.seed = 77, .stream = 5, .tick = Tensor::of<int64_t>(std::vector<int64_t>{3}, {1})};
        compare_packed(with_key_lengths, params, DType::f32);
      }
    }
  }
}

}  // namespace heed
