// Tests core/kernels/attention/attention.h against plain loops.
#include "heed/core/kernels/attention/attention.h"

#include <bit>

#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention/run_attention.h"
#include "heed/tests/core/kernels/attention_arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using test::distance;

using Sizes = test::HeadSizes;
using Inputs = test::HeadInputs;

using Outputs = test::HeadOutputs;

Outputs run(const Inputs& x, const kernel::AttentionParams& params) {
  return test::run_attention<kernel::Attention, kernel::AttentionBack>(x, params);
}

/// Translates the parameters of a kernel into those of the reference.
test::MapParams plainly(const Inputs& x, const kernel::AttentionParams& params) {
  test::MapParams out{.scale = params.scale};
  const int64_t Tq = x.q.extent(2), Tk = x.k.extent(2), H = x.q.extent(1);
  std::vector<double> lengths(static_cast<size_t>(x.q.extent(0)), static_cast<double>(Tk));
  if (params.key_lengths) lengths = params.key_lengths.to_doubles();
  out.seen = [=](int64_t b, int64_t, int64_t i, int64_t j) {
    return static_cast<double>(j) < lengths[static_cast<size_t>(b)] &&
           (!params.causal || j <= i + params.first_query);
  };
  if (params.bias) {
    const Tensor whole = view::expand(params.bias, {x.q.extent(0), H, Tq, Tk});
    const std::vector<double> bias = whole.to_doubles();
    out.bias = [=](int64_t b, int64_t h, int64_t i, int64_t j) {
      return bias[static_cast<size_t>(((b * H + h) * Tq + i) * Tk + j)];
    };
  }
  if (params.dropout > 0) {
    const uint64_t high = Draw::high(params.draw.stream, *params.draw.tick.data<int64_t>());
    out.keep = [=](int64_t b, int64_t h, int64_t i, int64_t j) {
      const auto element = static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk + j);
      const bool kept =
          kernel::dropout_bits(params.draw.seed, high, element) >= kernel::dropout_threshold(params.dropout);
      return kept ? kernel::dropout_scale(params.dropout) : 0.0;
    };
  }
  return out;
}

void compare(const Inputs& x, const kernel::AttentionParams& params, double grown = 1) {
  const double near = (x.q.dtype() == DType::f64 ? 1e-13 : 2e-5) * grown;
  const Outputs y = run(x, params);
  const test::MapResult want = test::reference(x.q, x.k, x.v, x.dout, plainly(x, params));
  CHECK(distance(y.out, want.out) < near);
  CHECK(distance(y.lse, want.lse) < near);
  CHECK(distance(y.dq, want.dq) < near);
  CHECK(distance(y.dk, want.dk) < near);
  CHECK(distance(y.dv, want.dv) < near);
}

Tensor lengths(std::vector<int32_t> values) {
  return Tensor::of<int32_t>(values, {static_cast<int64_t>(values.size())});
}

Draw some_draw() {
  return {.seed = 77, .stream = 5, .tick = Tensor::of<int64_t>(std::vector<int64_t>{3}, {1})};
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) {
           return std::bit_cast<uint64_t>(p) == std::bit_cast<uint64_t>(q);
         });
}

const std::vector<Sizes> sizes = {
    {1, 1, 1, 1, 1, 1},     {1, 1, 2, 2, 1, 3},       {2, 3, 17, 17, 16, 16},
    {1, 2, 65, 65, 64, 64}, {1, 2, 130, 130, 32, 32}, {2, 1, 33, 70, 24, 40},
    {1, 2, 130, 65, 5, 17}, {1, 1, 1, 200, 8, 8},     {2, 2, 3, 17, 20, 33},
};

}  // namespace

TEST_CASE("attention kernel: equals plain loops, full and causal, in float and double") {
  const OnEachDevice here;
  for (const Sizes& s : sizes) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const bool causal : {false, true}) {
        INFO("Tq " << s.Tq << " Tk " << s.Tk << " d " << s.d << " dv " << s.dv << " causal " << causal);
        compare(Inputs(s, dtype), {.scale = 0.7, .causal = causal, .first_query = causal ? s.Tk - s.Tq : 0});
      }
    }
  }
}

TEST_CASE("attention kernel: causal queries that begin anywhere, even before the first key") {
  const OnEachDevice here;
  for (const int64_t first : {-70, -5, 0, 1, 40}) {
    INFO("first query " << first);
    compare(Inputs({1, 2, 90, 100, 16, 8}, DType::f64), {.causal = true, .first_query = first});
  }
}

TEST_CASE("attention kernel: key lengths, and rows without any key are zero with zero gradients") {
  const OnEachDevice here;
  for (const bool causal : {false, true}) {
    const Inputs x({4, 2, 70, 70, 16, 24}, DType::f64);
    const kernel::AttentionParams params{
        .scale = 0.3, .causal = causal, .key_lengths = lengths({0, 1, 66, 70})};
    compare(x, params);
    const Outputs y = run(x, params);
    for (const double g : view::slice(y.out, 0, 0, 1).to_doubles()) REQUIRE(g == 0);
    for (const double g : view::slice(y.dq, 0, 0, 1).to_doubles()) REQUIRE(g == 0);
  }
}

TEST_CASE("attention kernel: what lies in padded keys changes nothing") {
  const OnEachDevice here;
  const Sizes s{1, 2, 20, 40, 16, 16};
  const kernel::AttentionParams params{.key_lengths = lengths({23})};
  Inputs x(s, DType::f32);
  const Outputs before = run(x, params);
  for (const Tensor& t : {x.k, x.v}) {
    for (int64_t row = 23; row < 40; ++row) {
      for (int64_t h = 0; h < 2; ++h) t.data<float>()[row * t.strides()[2] + h * t.strides()[1]] = NAN;
    }
  }
  const Outputs after = run(x, params);
  CHECK(same_bits(before.out, after.out));
  CHECK(same_bits(before.dq, after.dq));
  CHECK(same_bits(before.dk, after.dk));
}

TEST_CASE("attention kernel: biases of every broadcast shape") {
  const OnEachDevice here;
  const Sizes s{2, 3, 35, 66, 8, 8};
  for (const Shape& shape : {Shape{1, 1, 1, 66}, Shape{2, 1, 1, 66}, Shape{1, 3, 35, 66}, Shape{2, 3, 35, 66},
                             Shape{1, 3, 35, 1}, Shape{1, 1, 1, 1}}) {
    for (const bool causal : {false, true}) {
      INFO("bias " << to_string(shape) << " causal " << causal);
      auto values = test::numbers(shape.size(), 9);
      if (shape[2] > 1 && shape[3] > 1) {
        for (size_t i = 0; i < values.size(); i += 3) values[i] = -std::numeric_limits<double>::infinity();
        for (size_t i = 66; i < 132; ++i)
          values[i] = -std::numeric_limits<double>::infinity();  // a whole row
      }
      kernel::AttentionParams params{.causal = causal, .first_query = 10};
      params.bias = test::tensor(values, shape, DType::f64);
      compare(Inputs(s, DType::f64), params);
    }
  }
  kernel::AttentionParams turned;
  turned.bias = view::transpose(test::tensor(test::numbers(35 * 66, 9), {1, 1, 66, 35}, DType::f64), 2, 3);
  compare(Inputs(s, DType::f64), turned);
}

TEST_CASE("attention kernel: few queries, as in decoding, against many keys") {
  const OnEachDevice here;
  for (const int64_t Tq : {1, 2, 3, 4}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      INFO("queries " << Tq);
      const Inputs x({3, 2, Tq, 150, 20, 24}, dtype);
      kernel::AttentionParams params{
          .scale = 2, .causal = true, .first_query = 150 - Tq, .key_lengths = lengths({0, 80, 150})};
      compare(x, params);
      params.bias = test::tensor(test::numbers(2 * Tq * 150, 9), {1, 2, Tq, 150}, dtype);
      compare(x, params);
    }
  }
}

TEST_CASE("attention kernel: few queries whose keys are split, into parts of which some have none") {
  const OnEachDevice here;
  // Rows of whole packs and others, fewer and more columns than threads, one and several tiles a split.
  for (const Sizes& s : {Sizes{4, 1, 1, 700, 16, 8}, Sizes{4, 2, 2, 1100, 33, 3}, Sizes{4, 1, 1, 520, 4, 520},
                         Sizes{4, 1, 3, 513, 4, 140}, Sizes{4, 4, 3, 1500, 4, 8}}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      INFO("Tq " << s.Tq << " Tk " << s.Tk << " d " << s.d << " dv " << s.dv);
      const Inputs x(s, dtype);
      const auto all = static_cast<int32_t>(s.Tk);
      compare(x, {.scale = 2});
      kernel::AttentionParams params{.scale = 2,
                                     .causal = true,
                                     .first_query = s.Tk - s.Tq,
                                     .key_lengths = lengths({0, 5, all - 140, all})};
      compare(x, params);
      params.bias = test::tensor(test::numbers(s.Tk, 9), {1, 1, 1, s.Tk}, dtype);
      compare(x, params);
    }
  }
}

TEST_CASE("attention kernel: few queries whose keys and values begin within a pack") {
  const OnEachDevice here;
  for (const int64_t keys : {40, 600}) {
    Inputs x({2, 2, 1, keys, 12, 20}, DType::f32);
    x.q = view::slice(x.q, 3, 0, 8);
    x.k = view::slice(x.k, 3, 3, 11);
    compare(x, {.scale = 0.5});
    x.v = view::slice(x.v, 3, 1, 17);
    x.dout = view::slice(x.dout, 3, 0, 16);
    compare(x, {.scale = 0.5});
    x.k = view::slice(Inputs({2, 2, 1, keys, 12, 20}, DType::f32).k, 3, 4, 12);
    compare(x, {.scale = 0.5});
  }
}

TEST_CASE("attention kernel: dropout is that of the counters, in rows that begin anywhere in a block") {
  const OnEachDevice here;
  for (const int64_t keys : {64, 67, 130, 3}) {
    for (const bool causal : {false, true}) {
      INFO("keys " << keys << " causal " << causal);
      compare(Inputs({2, 2, 37, keys, 16, 16}, DType::f64),
              {.causal = causal, .first_query = 60, .dropout = 0.25, .draw = some_draw()});
    }
  }
  for (const double p : {0.2, 1e-7, 0.99}) {
    compare(Inputs({1, 2, 70, 70, 32, 32}, DType::f64), {.causal = true, .dropout = p, .draw = some_draw()});
  }
  compare(Inputs({1, 2, 70, 70, 32, 32}, DType::f32), {.causal = true, .dropout = 0.2, .draw = some_draw()});
}

TEST_CASE("attention kernel: large logits do not overflow and copy one value") {
  const OnEachDevice here;
  for (const double scale : {1e4, -1e4}) {
    compare(Inputs({1, 1, 4, 70, 16, 16}, DType::f64), {.scale = scale}, 1e4);
    const Inputs x({1, 1, 4, 70, 16, 16}, DType::f32);
    const Outputs y = run(x, {.scale = scale});
    CHECK(distance(y.out, test::reference(x.q, x.k, x.v, x.dout, {.scale = scale}).out) < 1e-2);
    for (const double value : y.dk.to_doubles()) CHECK(std::isfinite(value));
  }
}

TEST_CASE("attention kernel: rows that nobody reads give zero gradients, however large their logits") {
  const OnEachDevice here;
  // Logits so large that a rounding of one is more than any weight's logarithm.
  for (const int64_t width : {6, 16, 40}) {
    Inputs x({1, 2, 70, 70, width, 16}, DType::f32);
    x.dout = Tensor::zeros(x.dout.shape(), x.dout.dtype(), x.dout.device());
    const Outputs y = run(x, {.scale = 1e15});
    for (const Tensor* gradient : {&y.dq, &y.dk, &y.dv}) {
      for (const double value : gradient->to_doubles()) CHECK(value == 0);
    }
  }
}

TEST_CASE("attention kernel: a NaN is not hidden") {
  const OnEachDevice here;
  Inputs x({1, 1, 4, 20, 16, 16}, DType::f32);
  x.k.data<float>()[5] = NAN;
  const Outputs y = run(x, {});
  for (const double value : y.out.to_doubles()) CHECK(std::isnan(value));
  for (const double value : y.lse.to_doubles()) CHECK(std::isnan(value));
}

TEST_CASE("attention kernel: gradients agree with finite differences") {
  const OnEachDevice here;
  const Sizes s{1, 2, 5, 7, 3, 4};
  const kernel::AttentionParams params{
      .scale = 0.5, .causal = true, .first_query = 2, .dropout = 0.25, .draw = some_draw()};
  const Inputs x(s, DType::f64);
  const Outputs y = run(x, params);
  const auto dout = x.dout.to_doubles();
  const auto loss = [&] {
    const auto out = run(x, params).out.to_doubles();
    double total = 0;
    for (size_t i = 0; i < out.size(); ++i) total += out[i] * dout[i];
    return total;
  };
  for (const auto& [input, gradient] : {std::pair{x.q, y.dq}, {x.k, y.dk}, {x.v, y.dv}}) {
    double* values = input.data<double>();
    const double* slopes = gradient.data<double>();
    for (int64_t i = 0; i < input.size(); ++i) {
      const double kept = values[i], step = 1e-5;
      values[i] = kept + step;
      const double up = loss();
      values[i] = kept - step;
      const double down = loss();
      values[i] = kept;
      CHECK((up - down) / (2 * step) == Approx(slopes[i]).margin(1e-8));
    }
  }
}

TEST_CASE("attention kernel: the same bits with any number of threads") {
  const int before = threads();
  const Rounding rounding = GENERATE(Rounding::none, Rounding::bf16);
  for (const Sizes& s : {Sizes{1, 1, 700, 900, 32, 16}, Sizes{3, 8, 40, 40, 16, 16}}) {
    const Inputs x(s, DType::f32);
    const kernel::AttentionParams params{.causal = true,
                                         .first_query = s.Tk - s.Tq,
                                         .dropout = 0.1,
                                         .draw = some_draw(),
                                         .rounding = rounding};
    set_threads(1);
    const Outputs one = run(x, params);
    for (const int count : {2, 3, 4, 8}) {
      set_threads(count);
      const Outputs many = run(x, params);
      CHECK(same_bits(one.out, many.out));
      CHECK(same_bits(one.lse, many.lse));
      CHECK(same_bits(one.dq, many.dq));
      CHECK(same_bits(one.dk, many.dk));
      CHECK(same_bits(one.dv, many.dv));
    }
  }
  set_threads(before);
}

TEST_CASE("attention kernel: a later token leaves earlier causal outputs alone, to the bit") {
  const OnEachDevice here;
  const Inputs x({1, 1, 80, 80, 16, 16}, DType::f32);
  const Outputs before = run(x, {.causal = true});
  x.k.data<float>()[79 * 16] += 1;
  x.v.data<float>()[79 * 16] += 1;
  const Outputs after = run(x, {.causal = true});
  CHECK(same_bits(view::slice(before.out, 2, 0, 79), view::slice(after.out, 2, 0, 79)));
  CHECK_FALSE(same_bits(before.out, after.out));
}

TEST_CASE("attention kernel: memory grows with the length and time with what is seen") {
  const auto use = [](int64_t T, bool causal) {
    const Inputs x({1, 16, T, T, 16, 16}, DType::f32);
    reset_peak();
    const int64_t live = memory_use().live;
    Count::reset();
    run(x, {.causal = causal});
    return std::pair{memory_use().peak - live, Count::flops().load()};
  };
  const auto [memory, flops] = use(1024, false);
  const auto [memory_twice, flops_twice] = use(2048, false);
  CHECK(flops == 2 * 7 * int64_t{16} * 1024 * 1024 * 16);
  CHECK(flops_twice == 4 * flops);
  CHECK(memory_twice < 2.2 * static_cast<double>(memory));
  CHECK(static_cast<double>(use(2048, true).second) < 0.53 * static_cast<double>(flops_twice));
}

TEST_CASE("attention kernel: no queries, no keys") {
  const OnEachDevice here;
  const Outputs none = run(Inputs({1, 2, 3, 0, 16, 16}, DType::f32), {});
  for (const double value : none.out.to_doubles()) CHECK(value == 0);
  for (const double value : none.dq.to_doubles()) CHECK(value == 0);
  const Outputs blind = run(Inputs({1, 2, 0, 3, 16, 16}, DType::f32), {});
  for (const double value : blind.dk.to_doubles()) CHECK(value == 0);
}

TEST_CASE("attention kernel: no features, no heads, no sequences") {
  for (const Sizes& s : {Sizes{1, 1, 4, 5, 0, 0}, Sizes{1, 2, 70, 300, 0, 3}, Sizes{1, 2, 70, 9, 3, 0},
                         Sizes{0, 2, 4, 5, 3, 3}, Sizes{2, 0, 4, 5, 3, 3}}) {
    const Outputs y = run(Inputs(s, DType::f32), {.scale = 1, .causal = s.Tq <= s.Tk});
    for (const double value : y.out.to_doubles()) CHECK(std::isfinite(value));
    for (const double value : y.dv.to_doubles()) CHECK(std::isfinite(value));
  }
}

}  // namespace heed
