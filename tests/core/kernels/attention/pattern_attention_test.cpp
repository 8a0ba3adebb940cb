// Tests core/kernels/attention/pattern_attention.h against plain loops with a mask.
#include "heed/core/kernels/attention/pattern_attention.h"

#include <bit>

#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/sparse_pattern.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention/run_attention.h"
#include "heed/tests/core/kernels/attention_arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using test::blank_like;
using test::distance;
using Allowed = std::function<bool(int64_t h, int64_t i, int64_t j)>;

std::shared_ptr<const kernel::Pattern> pattern(int64_t H, int64_t Tq, int64_t Tk, const Allowed& allowed) {
  kernel::Pattern p{.heads = H, .queries = Tq, .keys = Tk, .first = {0}, .runs = {}};
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t i = 0; i < Tq; ++i) {
      for (int64_t j = 0; j < Tk; ++j) {
        if (!allowed(h, i, j)) continue;
        const bool joins = static_cast<int64_t>(p.runs.size()) > p.first.back() && p.runs.back().end == j;
        if (joins) {
          ++p.runs.back().end;
        } else {
          p.runs.push_back({static_cast<int32_t>(j), static_cast<int32_t>(j + 1)});
        }
      }
      p.first.push_back(static_cast<int64_t>(p.runs.size()));
    }
  }
  return std::make_shared<const kernel::Pattern>(std::move(p));
}

using Sizes = test::HeadSizes;
using Inputs = test::HeadInputs;

using Outputs = test::HeadOutputs;

Outputs run(const Inputs& x, const kernel::PatternParams& params) {
  return test::run_attention<kernel::PatternAttention, kernel::PatternAttentionBack>(x, params);
}

constexpr double rate = 0.3;

void compare(const Sizes& s, DType dtype, const Allowed& allowed, int64_t heads_of_pattern,
             const std::vector<int32_t>& lengths = {}, const Draw& draw = {},
             Rounding rounding = Rounding::none) {
  const Inputs x(s, dtype);
  // What rounding does to a weight grows with the logits, so these are as large as models have them.
  const double scale = rounding == Rounding::none ? 0.6 : 1 / std::sqrt(static_cast<double>(s.d));
  kernel::PatternParams params{.scale = scale,
                               .pattern = pattern(heads_of_pattern, s.Tq, s.Tk, allowed),
                               .dropout = draw.tick ? rate : 0,
                               .draw = draw,
                               .rounding = rounding};
  if (!lengths.empty()) params.key_lengths = Tensor::of<int32_t>(lengths, {s.B});
  const Outputs y = run(x, params);
  const auto seen = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return allowed(heads_of_pattern == 1 ? 0 : h, i, j) &&
           (lengths.empty() || j < lengths[static_cast<size_t>(b)]);
  };
  const auto keep = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!draw.tick) return 1.0;
    const auto element = static_cast<uint64_t>(((b * s.H + h) * s.Tq + i) * s.Tk + j);
    const uint64_t high = Draw::high(draw.stream, *draw.tick.data<int64_t>());
    return kernel::dropout_bits(draw.seed, high, element) >= kernel::dropout_threshold(rate)
               ? kernel::dropout_scale(rate)
               : 0;
  };
  const test::MapResult want =
      test::reference(x.q, x.k, x.v, x.dout, {.scale = scale, .seen = seen, .keep = keep});
  const bool rounded = rounding != Rounding::none && device_here() != Device::cpu;
  // What rounding takes from a weight is a share of it, and dropout multiplies the weights it keeps.
  const double kept = draw.tick ? kernel::dropout_scale(rate) : 1;
  const double near = rounded               ? (rounding == Rounding::bf16 ? 0.02 : 0.003) * kept
                      : dtype == DType::f64 ? 1e-13
                                            : 2e-5;
  CHECK(distance(y.out, want.out) < near);
  CHECK(distance(y.lse, want.lse) < near);
  CHECK(distance(y.dq, want.dq) < near);
  CHECK(distance(y.dk, want.dk) < near);
  CHECK(distance(y.dv, want.dv) < near);
}

struct Named {
  const char* name;
  Allowed allowed;
};

const std::vector<Named> patterns = {
    {"everything", [](int64_t, int64_t, int64_t) { return true; }},
    {"nothing", [](int64_t, int64_t, int64_t) { return false; }},
    {"causal", [](int64_t, int64_t i, int64_t j) { return j <= i; }},
    {"band", [](int64_t, int64_t i, int64_t j) { return std::abs(i - j) <= 3; }},
    {"wide band", [](int64_t, int64_t i, int64_t j) { return std::abs(i - j) <= 40; }},
    {"strided", [](int64_t, int64_t i, int64_t j) { return j <= i && (i - j) % 11 == 0; }},
    {"band and first keys", [](int64_t, int64_t i, int64_t j) { return j < 2 || (j <= i && i - j < 5); }},
    {"a global query", [](int64_t, int64_t i, int64_t j) { return i == 20 || j == 7 || i == j; }},
    {"scattered", [](int64_t h, int64_t i, int64_t j) { return (i * 31 + j * 17 + h * 5) % 7 == 0; }},
    {"some rows empty", [](int64_t, int64_t i, int64_t j) { return i % 5 != 0 && j > i; }},
    {"dilated", [](int64_t, int64_t i, int64_t j) { return std::abs(i - j) <= 28 && (i - j) % 4 == 0; }},
    {"last keys and columns",
     [](int64_t, int64_t i, int64_t j) { return j <= i && (i - j < 9 || (i - j) % 9 == 0); }},
    {"blocks and their last keys",
     [](int64_t, int64_t i, int64_t j) { return j <= i && (i / 16 == j / 16 || j % 16 > 13); }},
    {"random blocks",
     [](int64_t h, int64_t i, int64_t j) { return (i / 16 * 7 + h) % 5 == j / 16 || i / 16 == j / 16; }},
    {"one key far away", [](int64_t h, int64_t i, int64_t j) { return j == (i * 29 + h * 13) % 100; }},
};

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) {
           return std::bit_cast<uint64_t>(p) == std::bit_cast<uint64_t>(q);
         });
}

}  // namespace

TEST_CASE("block attention kernel: equals plain loops over every pattern") {
  const OnEachDevice here;
  for (const Named& p : patterns) {
    for (const Sizes& s :
         {Sizes{1, 2, 1, 1, 1, 1}, Sizes{2, 2, 17, 17, 16, 16}, Sizes{1, 2, 130, 130, 32, 32},
          Sizes{1, 2, 65, 101, 20, 33}, Sizes{1, 1, 70, 40, 5, 8}}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        for (const bool shared : {true, false}) {
          INFO(p.name << " Tq " << s.Tq << " Tk " << s.Tk << " d " << s.d << " shared " << shared);
          compare(s, dtype, p.allowed, shared ? 1 : s.H);
        }
      }
    }
  }
}

TEST_CASE("block attention kernel: key lengths cut the runs") {
  const OnEachDevice here;
  for (const Named& p : patterns) {
    INFO(p.name);
    compare({4, 2, 70, 70, 16, 16}, DType::f64, p.allowed, 1, {0, 1, 33, 70});
    compare({4, 2, 20, 70, 16, 16}, DType::f64, p.allowed, 1, {0, 0, 13, 70});
  }
}

TEST_CASE("block attention kernel: lone heads are cut into runs of keys, and long inputs into columns") {
  const OnEachDevice here;
  for (const Named& p : patterns) {
    INFO(p.name);
    const int64_t T = is_emulated() ? 200 : 450;
    compare({1, 1, T, T, 64, 24}, DType::f64, p.allowed, 1, {static_cast<int32_t>(T - 20)});
    compare({1, 2, T, T, 64, 64}, DType::f32, p.allowed, 2);
  }
}

TEST_CASE("block attention kernel: runs of keys of a lone head add up, also over two passes") {
  Rng rng(5);
  for (const Named& p : patterns) {
    const std::string name = p.name;
    if (name != "strided" && name != "last keys and columns" && name != "random blocks") continue;
    INFO(name);
    compare({1, 1, 1300, 1300, 64, 40}, DType::f64, p.allowed, 1, {1200}, rng.next());
  }
}

TEST_CASE("block attention kernel: dropout draws what attention draws for each pair") {
  const OnEachDevice here;
  Rng rng(5);
  rng.restore(3, 7);
  for (const Named& p : patterns) {
    for (const Sizes& s : {Sizes{2, 2, 17, 17, 16, 16}, Sizes{1, 2, 130, 128, 32, 32},
                           Sizes{1, 1, 70, 41, 5, 8}, Sizes{1, 1, 400, 400, 64, 64}}) {
      if (s.Tq == 400 && is_emulated()) continue;
      for (const DType dtype : {DType::f32, DType::f64}) {
        INFO(p.name << " Tq " << s.Tq << " Tk " << s.Tk);
        compare(s, dtype, p.allowed, 1, {}, rng.next());
      }
    }
  }
}

TEST_CASE("block attention kernel: rounded products differ by their rounding") {
  const OnEachDevice here;
  Rng rng(5);
  for (const Rounding rounding : {Rounding::bf16, Rounding::tf32}) {
    for (const Named& p : patterns) {
      for (const Sizes& s : {Sizes{1, 2, 130, 130, 32, 32}, Sizes{2, 1, 65, 101, 20, 33},
                             Sizes{1, 1, 70, 40, 64, 8}, Sizes{1, 1, 66, 70, 100, 128}}) {
        INFO(p.name << " Tq " << s.Tq << " Tk " << s.Tk << " d " << s.d << " " << static_cast<int>(rounding));
        compare(s, DType::f32, p.allowed, 1, {}, {}, rounding);
      }
      compare({4, 2, 70, 70, 16, 16}, DType::f32, p.allowed, 2, {0, 1, 33, 70}, rng.next(), rounding);
      compare({4, 2, 20, 70, 16, 16}, DType::f32, p.allowed, 1, {0, 0, 13, 70}, rng.next(), rounding);
    }
  }
}

TEST_CASE("block attention kernel: the tensor cores' products are exact where rounding changes nothing") {
  const OnEachDevice here;
  // Small whole numbers, and one key for each query: its weight is one.
  Inputs x({1, 2, 100, 100, 48, 40}, DType::f32);
  for (const Tensor& t : {x.q, x.k, x.v, x.dout}) {
    float* values = t.data<float>();
    for (int64_t i = 0; i < t.size(); ++i) values[i] = std::round(3 * values[i]);
  }
  kernel::PatternParams params{.scale = 0.05, .pattern = pattern(2, 100, 100, patterns.back().allowed)};
  const Outputs want = run(x, params);
  params.rounding = GENERATE(Rounding::bf16, Rounding::tf32);
  const Outputs y = run(x, params);
  CHECK(y.out.to_doubles() == want.out.to_doubles());
  CHECK(distance(y.lse, want.lse.to_doubles()) < 1e-6);
  CHECK(distance(y.dv, want.dv.to_doubles()) < 1e-6);
}

TEST_CASE("block attention kernel: a pattern that keeps everything has the bits of attention") {
  const Inputs x({2, 2, 150, 131, 32, 16}, DType::f32);
  Rng rng(5);
  for (const double p : {0.0, 0.25}) {
    const Draw draw = rng.next();
    const Outputs y = run(
        x, {.scale = 0.3, .pattern = pattern(1, 150, 131, patterns[0].allowed), .dropout = p, .draw = draw});
    const Tensor out = blank_like(x.dout), lse({2, 2, 150});
    launch_here<kernel::Attention>(
        x.q, x.k, x.v, kernel::AttentionParams{.scale = 0.3, .dropout = p, .draw = draw}, out, lse);
    CHECK(same_bits(y.out, out));
    CHECK(same_bits(y.lse, lse));
  }
}

TEST_CASE("block attention kernel: rows without keys are zero and get no gradient") {
  const OnEachDevice here;
  const Inputs x({1, 1, 20, 20, 8, 8}, DType::f32);
  const Outputs y =
      run(x, {.pattern = pattern(1, 20, 20, [](int64_t, int64_t i, int64_t j) { return i > 3 && j < 9; })});
  for (const Tensor& t :
       {view::slice(y.out, 2, 0, 4), view::slice(y.dq, 2, 0, 4), view::slice(y.dk, 2, 9, 20)}) {
    for (const double value : t.to_doubles()) CHECK(value == 0);
  }
  CHECK(std::isinf(y.lse.to_doubles()[0]));
}

TEST_CASE("block attention kernel: the same bits with any number of threads") {
  const int before = threads();
  for (const Named& p : patterns) {
    const Inputs x({2, 3, 300, 300, 16, 16}, DType::f32);
    const kernel::PatternParams params{.scale = 0.4, .pattern = pattern(3, 300, 300, p.allowed)};
    set_threads(1);
    const Outputs one = run(x, params);
    for (const int count : {2, 3, 4, 8}) {
      INFO(p.name << " with " << count << " threads");
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

TEST_CASE("block attention kernel: work follows what is kept") {
  const auto use = [](int64_t T, const Allowed& allowed) {
    const Inputs x({1, 1, T, T, 16, 16}, DType::f32);
    const kernel::PatternParams params{.pattern = pattern(1, T, T, allowed)};
    reset_peak();
    const int64_t live = memory_use().live;
    Count::reset();
    run(x, params);
    return std::pair{static_cast<double>(memory_use().peak - live),
                     static_cast<double>(Count::flops().load())};
  };
  const Allowed band = [](int64_t, int64_t i, int64_t j) { return std::abs(i - j) <= 32; };
  const Allowed strided = [](int64_t, int64_t i, int64_t j) { return (i - j) % 64 == 0; };
  const auto [memory, flops] = use(1024, band);
  const auto [memory_twice, flops_twice] = use(2048, band);
  CHECK(memory_twice < 2.2 * memory);
  CHECK(flops_twice < 2.1 * flops);
  const double kept = 2 * 7 * 16 * 1024.0 * 1024 / 64;
  CHECK(use(1024, strided).second < 1.3 * kept);
  // Neighbours share no columns and the last keys lie in none: two groups for each query.
  const Allowed both = [](int64_t, int64_t i, int64_t j) {
    return j <= i && (i - j < 64 || (i - j) % 64 == 0);
  };
  CHECK(use(4096, both).second < 2.2 * 14 * 16 * static_cast<double>(pattern(1, 4096, 4096, both)->kept()));
}

TEST_CASE("block attention kernel: pairs are counted as dense attention counts its own") {
  const Inputs x({2, 3, 70, 70, 8, 8}, DType::f32);
  const Tensor out = blank_like(x.dout), lse(Shape{2, 3, 70});
  const auto pairs = [](const std::function<void()>& work) {
    PairCount::reset();
    work();
    return PairCount::total().load();
  };
  const kernel::PatternParams causal{
      .pattern = pattern(1, 70, 70, [](int64_t, int64_t i, int64_t j) { return j <= i; })};
  CHECK(pairs([&] { launch<kernel::PatternAttention>(Device::cpu, x.q, x.k, x.v, causal, out, lse); }) ==
        2 * 3 * 70 * 71 / 2);
  CHECK(pairs([&] {
          launch<kernel::Attention>(Device::cpu, x.q, x.k, x.v, kernel::AttentionParams{.causal = true}, out,
                                    lse);
        }) == 2 * 3 * 70 * 71 / 2);
  CHECK(pairs([&] {
          launch<kernel::Attention>(Device::cpu, x.q, x.k, x.v, kernel::AttentionParams{}, out, lse);
        }) == 2 * 3 * 70 * 70);
}

TEST_CASE("block attention kernel: a pattern counts what it keeps") {
  CHECK(pattern(2, 5, 5, [](int64_t, int64_t i, int64_t j) { return j <= i; })->kept() == 30);
}

}  // namespace heed
