// Attention kernels on packed sequences: bit for bit what they compute on padded rows, on every device, near
// what the CPU computes, and without a touch of rows that belong to no sequence.
#include "heed/tests/core/kernels/attention/run_attention.h"
#include "heed/tests/core/kernels/packed_rows.h"
#include "heed/tests/core/numbers.h"

namespace heed {
namespace {

using kernel::AttentionParams;
using test::Lengths;
using test::PackedSizes;

test::HeadOutputs run_packed(Device device, const test::HeadInputs& x, const AttentionParams& params,
                             int64_t B, int64_t Tq) {
  const bool trained = params.relative && params.softcap == 0;
  return test::run_attention_on<kernel::Attention, kernel::AttentionBack>(
      device, x, params, trained ? empty_like(params.relative) : Tensor(),
      Tensor::full(Shape{2, B, x.q.extent(1), Tq}, std::nan(""), x.q.dtype()));
}

/// Packed on this device: equal to padded, and within `near` of packed on the CPU with exact products.
void compare_packed(const PackedSizes& s, AttentionParams params, DType dtype, double near) {
  CAPTURE(s.Tq, s.Tk, s.d, s.dv, s.queries, s.keys, s.key_lengths, params.causal, params.dropout,
          params.softcap, static_cast<bool>(params.relative), to_string(dtype));
  const int64_t B = s.batch();
  const test::PaddedAndPacked call(s, params, dtype);
  params = call.packed_params;
  const test::HeadOutputs y = run_packed(device_here(), call.packed, params, B, s.Tq),
                          same = run_packed(device_here(), call.padded, call.padded_params, B, s.Tq);
  CHECK(distance(y.out, test::packed_heads(same.out, params.queries)) == 0);
  CHECK(distance(y.lse, test::frame_of(same.lse, params.queries)) == 0);
  CHECK(distance(y.dq, test::packed_heads(same.dq, params.queries)) == 0);
  CHECK(distance(y.dk, test::packed_heads(same.dk, params.keys)) == 0);
  CHECK(distance(y.dv, test::packed_heads(same.dv, params.keys)) == 0);
  if (y.drelative) CHECK(distance(y.drelative, same.drelative) == 0);
  if (device_here() == Device::cpu) return;
  params.rounding = Rounding::none;
  const test::HeadOutputs want = run_packed(Device::cpu, call.packed, params, B, s.Tq);
  CHECK(distance(y.out, want.out) < near);
  CHECK(distance(y.dq, want.dq) < near);
  CHECK(distance(y.dk, want.dk) < near);
  CHECK(distance(y.dv, want.dv) < near);
  if (y.drelative) CHECK(distance(y.drelative, want.drelative) < near);
}

/// The parameters that change how pairs are weighed, one more at a time, for H heads.
std::vector<AttentionParams> ways_to_weigh(const PackedSizes& s, DType dtype) {
  AttentionParams params{.scale = 0.4};
  std::vector<AttentionParams> all{params};
  params.dropout = 0.25;
  params.draw = {.seed = 77, .stream = 5, .tick = Tensor::of<int64_t>(std::vector<int64_t>{3}, {1})};
  all.push_back(params);
  const int64_t span = s.Tq + s.Tk - 1;
  params.relative = test::tensor(test::numbers(s.H * span, 7), {s.H, span}, dtype);
  params.sink = test::tensor(test::numbers(s.H, 8), {s.H}, dtype);
  all.push_back(params);
  params.bias = test::tensor(test::numbers(s.Tq * s.Tk, 9), {1, 1, s.Tq, s.Tk}, dtype);
  params.softcap = 0.5;
  all.push_back(params);
  return all;
}

const Lengths some_lengths{140, 66, 0, 9}, other_lengths{100, 0, 33, 1};

}  // namespace

TEST_CASE("packed attention: as padded rows, in self and cross attention") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool causal = GENERATE(false, true);
  for (const PackedSizes& s :
       {PackedSizes{2, 1, 140, 140, 12, 40, some_lengths, some_lengths},
        PackedSizes{1, 1, 140, 140, 40, 6, some_lengths, some_lengths, {140, 40, 0, 0}},
        PackedSizes{2, 2, 140, 100, 6, 8, some_lengths, other_lengths},
        PackedSizes{1, 1, 140, 70, 6, 8, some_lengths, {}, {70, 3, 0, 50}},
        PackedSizes{2, 1, 20, 100, 6, 8, {}, other_lengths, {100, 0, 20, 1}}}) {
    for (AttentionParams params : ways_to_weigh(s, dtype)) {
      params.causal = causal;
      compare_packed(s, params, dtype, 5 * tolerance(dtype));
    }
  }
}

TEST_CASE("packed attention: as padded rows where queries are few, and their keys split") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool causal = GENERATE(false, true);
  for (const PackedSizes& s :
       {PackedSizes{2, 1, 3, 900, 20, 40, {3, 1, 0, 2}, {900, 20, 5, 600}, {900, 20, 5, 0}},
        PackedSizes{2, 2, 2, 30, 6, 5, {2, 1, 0, 2}, {}, {30, 20, 5, 0}},
        PackedSizes{2, 2, 2, 2, 8, 8, {2, 1, 0, 2}, {2, 1, 0, 2}}}) {
    for (AttentionParams params : ways_to_weigh(s, dtype)) {
      params.causal = causal;
      params.first_query = s.Tk - s.Tq;
      params.dropout = 0;
      compare_packed(s, params, dtype, 5 * tolerance(dtype));
    }
  }
}

TEST_CASE("packed attention: as padded rows with products of rounded factors") {
  const OnEachDevice here;
  // Factors keep 8 bits, or 11; numbers are below one and rows have up to 100 of them.
  const Rounding rounding = GENERATE(Rounding::bf16, Rounding::tf32);
  const bool causal = GENERATE(false, true);
  for (const PackedSizes& s :
       {PackedSizes{2, 1, 140, 140, 24, 16, some_lengths, some_lengths, {140, 40, 0, 0}},
        PackedSizes{1, 1, 140, 100, 40, 64, some_lengths, other_lengths},
        PackedSizes{1, 1, 140, 70, 100, 20, some_lengths, {}, {70, 3, 0, 50}},
        PackedSizes{2, 2, 20, 100, 16, 16, {}, other_lengths}}) {
    for (AttentionParams params : ways_to_weigh(s, DType::f32)) {
      params.causal = causal;
      params.rounding = rounding;
      compare_packed(s, params, DType::f32, rounding == Rounding::bf16 ? 0.1 : 0.02);
    }
  }
}

}  // namespace heed
