// Formulas of a program in attention(): values, gradients and bits, against plain loops and the built-in
// forms.
#include "heed/autograd/pair_formulas.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>

#include "heed/autograd/autocast.h"
#include "heed/autograd/gradcheck.h"
#include "heed/autograd/ops.h"
#include "heed/core/operation_count.h"
#include "heed/tests/core/numbers.h"

namespace heed {
namespace {

using std::tanh;

/// q, k and v of 4 query heads and 2 key heads, in tiles that are not full.
struct Heads {
  Tensor q, k, v;
};
Heads heads(DType dtype, int64_t Tq = 141, int64_t Tk = 141) {
  return {leaf(random_tensor(Shape{2, 4, Tq, 24}, dtype, 1, -2, 2)),
          leaf(random_tensor(Shape{2, 2, Tk, 24}, dtype, 2, -2, 2)),
          leaf(random_tensor(Shape{2, 2, Tk, 17}, dtype, 3, -2, 2))};
}
constexpr double scale = 0.2;

/// Documents of 37 tokens; those of the second sequence begin 9 tokens earlier.
int64_t document(int64_t b, int64_t t) { return (t + 9 * b) / 37; }

const auto hides_nothing = [](int64_t, int64_t, int64_t, int64_t, auto s) { return s; };
const auto alibi = [](int64_t, int64_t h, int64_t i, int64_t j, auto s) {
  return s - std::ldexp(1.0, static_cast<int>(-2 * (h + 1))) * static_cast<double>(i - j);
};
const auto capped = [](int64_t b, int64_t, int64_t, int64_t, auto s) {
  const double cap = 1.5 + static_cast<double>(b);
  return cap * tanh(s / cap);
};
const auto in_document = [](int64_t b, int64_t, int64_t i, int64_t j) {
  return j <= i && document(b, i) == document(b, j);
};

/// The formula in plain loops, in f64: out [B, H, Tq, dv]. f gives -infinity for hidden pairs.
using PlainFormula = std::function<double(int64_t b, int64_t h, int64_t i, int64_t j, double score)>;
std::vector<double> plain(const Heads& x, const PlainFormula& f) {
  const auto q = x.q.to_doubles(), k = x.k.to_doubles(), v = x.v.to_doubles();
  const int64_t B = x.q.extent(0), H = x.q.extent(1), Tq = x.q.extent(2), Tk = x.k.extent(2),
                d = x.q.extent(3), dv = x.v.extent(3), Hk = x.k.extent(1);
  std::vector<double> out;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      const int64_t row_of_keys = (b * Hk + h * Hk / H) * Tk;
      for (int64_t i = 0; i < Tq; ++i) {
        std::vector<double> sums(static_cast<size_t>(dv));
        double total = 0;
        for (int64_t j = 0; j < Tk; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < d; ++c)
            dot += q[static_cast<size_t>(((b * H + h) * Tq + i) * d + c)] *
                   k[static_cast<size_t>((row_of_keys + j) * d + c)];
          const double weight = std::exp(f(b, h, i, j, scale * dot));
          total += weight;
          for (int64_t c = 0; c < dv; ++c)
            sums[static_cast<size_t>(c)] += weight * v[static_cast<size_t>((row_of_keys + j) * dv + c)];
        }
        for (const double sum : sums) out.push_back(total == 0 ? 0 : sum / total);
      }
    }
  }
  return out;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t n = 0; n < a.size(); ++n)
    worst =
        std::max(worst, std::isnan(a[n]) ? HUGE_VAL : std::abs(a[n] - b[n]) / std::max(1.0, std::abs(b[n])));
  return worst;
}

/// The output, and the gradients of q, k and v, of a fixed combination of all results.
std::vector<std::vector<double>> run(const Heads& given, const std::function<Tensor(const Heads&)>& attend) {
  const Heads x{leaf(given.q.detach()), leaf(given.k.detach()), leaf(given.v.detach())};
  const Tensor y = attend(x);
  backward(sum(y * random_tensor(y.shape(), y.dtype(), 5)));
  return {y.to_doubles(), grad_of(x.q).to_doubles(), grad_of(x.k).to_doubles(), grad_of(x.v).to_doubles()};
}
std::vector<std::vector<double>> run(const Heads& x, const kernel::AttentionParams& params) {
  return run(x, [&](const Heads& y) { return attention(y.q, y.k, y.v, params); });
}

void check_equal(const Heads& x, const kernel::AttentionParams& found,
                 const kernel::AttentionParams& expected, double tolerance) {
  const auto a = run(x, found), b = run(x, expected);
  for (size_t n = 0; n < a.size(); ++n) CHECK(difference(a[n], b[n]) < tolerance);
}

/// k or v [B, 2, Tk, d] as [B, 4, Tk, d], where query heads 0 and 1 have the first.
Tensor repeat_keys(const Tensor& x) {
  const Shape repeated{x.extent(0), 2, 2, x.extent(2), x.extent(3)};
  return reshape(expand(reshape(x, Shape{x.extent(0), 2, 1, x.extent(2), x.extent(3)}), repeated),
                 Shape{x.extent(0), 4, x.extent(2), x.extent(3)});
}

kernel::AttentionParams with(std::shared_ptr<const ScoreFormula> score,
                             std::shared_ptr<const MaskFormula> mask = {}) {
  return {.scale = scale, .formulas = {.score = std::move(score), .mask = std::move(mask)}};
}

/// Counts the blocks of pairs that attention asks a mask about.
struct CountedMask final : MaskFormula {
  explicit CountedMask(std::shared_ptr<const MaskFormula> wrapped) : mask(std::move(wrapped)) {}
  void visible_keys(const PairBlock& pairs, uint64_t* bits) const override {
    ++count;
    mask->visible_keys(pairs, bits);
  }
  KeyBounds bounds(int64_t batch, int64_t head, int64_t query) const override {
    return mask->bounds(batch, head, query);
  }
  std::shared_ptr<const MaskFormula> mask;
  mutable std::atomic<int64_t> count = 0;
};

}  // namespace

TEST_CASE("pair formulas: attention computes what plain loops do") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Heads x = heads(dtype);
  const double bound = tolerance(dtype);
  const auto check = [&](const kernel::AttentionParams& params, const PlainFormula& f) {
    CHECK(difference(attention(x.q, x.k, x.v, params).to_doubles(), plain(x, f)) < bound);
  };
  check(with(score_formula(alibi)), alibi);
  check(with(score_formula(capped)), capped);
  const auto hidden = [](auto b, auto h, auto i, auto j, double s) {
    return in_document(b, h, i, j) ? s : -HUGE_VAL;
  };
  check(with({}, mask_formula(in_document)), hidden);
  check(with(score_formula(
            [](auto b, auto h, auto i, auto j, auto s) { return in_document(b, h, i, j) ? s : -HUGE_VAL; })),
        hidden);
  const auto everything = [&](auto b, auto h, auto i, auto j, double s) {
    const bool is_padding = j >= (b == 0 ? 100 : 141);
    return is_padding || !in_document(b, h, i, j) ? -HUGE_VAL : capped(b, h, i, j, s);
  };
  kernel::AttentionParams params = with(score_formula(capped), mask_formula(in_document));
  params.causal = true;
  params.key_lengths = Tensor::of<int32_t>(std::vector<int32_t>{100, 141}, Shape{2});
  check(params, everything);
}

TEST_CASE("pair formulas: those of built-in forms equal them, with their gradients") {
  const Heads x = heads(DType::f64);
  const kernel::AttentionParams plain_form{.scale = scale};
  check_equal(x, with(score_formula(hides_nothing)), plain_form, 1e-13);

  kernel::AttentionParams causal = plain_form;
  causal.causal = true;
  check_equal(x, with({}, mask_formula([](auto, auto, auto i, auto j) { return j <= i; })), causal, 1e-13);
  check_equal(x,
              with(score_formula([](auto, auto, auto i, auto j, auto s) { return j <= i ? s : -HUGE_VAL; })),
              causal, 1e-13);

  kernel::AttentionParams cap = plain_form;
  cap.softcap = 1.5;
  check_equal(x, with(score_formula([](auto, auto, auto, auto, auto s) { return 1.5 * tanh(s / 1.5); })), cap,
              1e-13);

  std::vector<double> window, distances;
  for (int64_t i = 0; i < 141; ++i) {
    for (int64_t j = 0; j < 141; ++j) window.push_back(std::abs(i - j) <= 20 ? 0 : -HUGE_VAL);
  }
  kernel::AttentionParams near = plain_form;
  near.bias = Tensor::of<double>(window, Shape{1, 1, 141, 141});
  const auto sees = [](auto, auto, auto i, auto j) { return std::abs(i - j) <= 20; };
  const auto bounds = [](auto, auto, auto i) { return KeyBounds{i - 20, i + 21}; };
  check_equal(x, with({}, mask_formula(sees)), near, 1e-13);
  check_equal(x, with({}, mask_formula(sees, bounds)), near, 1e-13);
  // The bounds alone are the window, too.
  check_equal(x, with({}, mask_formula([](auto, auto, auto, auto) { return true; }, bounds)), near, 1e-13);

  for (int64_t h = 0; h < 4; ++h) {
    for (int64_t distance = -140; distance <= 140; ++distance)
      distances.push_back(alibi(0, h, distance, 0, 0.0));
  }
  kernel::AttentionParams linear = plain_form;
  linear.relative = Tensor::of<double>(distances, Shape{4, 281});
  check_equal(x, with(score_formula(alibi)), linear, 1e-13);
}

TEST_CASE("pair formulas: dropout, sinks and biases act as without them") {
  const Heads x = heads(DType::f64);
  kernel::AttentionParams expected{.scale = scale, .causal = true, .dropout = 0.3, .draw = Rng(3).next()};
  expected.sink = random_tensor(Shape{4}, DType::f64, 7);
  expected.bias = random_tensor(Shape{1, 4, 141, 141}, DType::f64, 8);
  kernel::AttentionParams found = expected;
  found.formulas = {.score = score_formula(hides_nothing),
                    .mask = mask_formula([](auto, auto, auto, auto) { return true; })};
  check_equal(x, found, expected, 1e-13);
}

TEST_CASE("pair formulas: gradients are those of central differences") {
  Heads x{random_tensor(Shape{2, 4, 7, 3}, DType::f64, 1), random_tensor(Shape{2, 2, 9, 3}, DType::f64, 2),
          random_tensor(Shape{2, 2, 9, 2}, DType::f64, 3)};
  kernel::AttentionParams params{.scale = 0.7, .dropout = 0.2, .draw = Rng(3).next()};
  params.key_lengths = Tensor::of<int32_t>(std::vector<int32_t>{9, 6}, Shape{2});
  params.formulas.score = score_formula([](auto, auto h, auto i, auto j, auto s) {
    return 2.0 * tanh(s / 2.0) * s - 0.1 * static_cast<double>((h + 1) * std::abs(i - j));
  });
  params.formulas.mask = mask_formula([](auto b, auto, auto i, auto j) { return (i + j + b) % 4 != 0; });
  require_gradients([&](auto y) { return attention(y[0], y[1], y[2], params); }, {x.q, x.k, x.v});
  require_gradients([&](auto y) { return attention_with_sums(y[0], y[1], y[2], params); },
                    {x.q, repeat_keys(x.k), repeat_keys(x.v)});
}

TEST_CASE("pair formulas: bits do not depend on the number of threads") {
  const Heads x = heads(DType::f32, 300, 700);
  kernel::AttentionParams params =
      with(score_formula(alibi),
           mask_formula([](auto b, auto, auto i, auto j) { return (i + b) / 50 == j / 117; }));
  params.dropout = 0.1;
  params.draw = Rng(3).next();
  const int before = threads();
  set_threads(1);
  const auto one = run(x, params);
  for (const int count : {2, 8}) {
    set_threads(count);
    CHECK((run(x, params) == one));
  }
  set_threads(before);
}

TEST_CASE("pair formulas: a query that sees no key gets zeros, and gives none a gradient") {
  const Heads x = heads(DType::f32);
  const auto hides = [](auto i) { return i % 5 == 2 || (i >= 64 && i < 128); };
  for (const bool by_score : {true, false}) {
    CAPTURE(by_score);
    const auto params =
        by_score
            ? with(score_formula([&](auto, auto, auto i, auto, auto s) { return hides(i) ? -HUGE_VAL : s; }))
            : with({}, mask_formula([&](auto, auto, auto i, auto) { return !hides(i); }));
    const auto found = run(x, params), whole = run(x, {.scale = scale});
    for (size_t row = 0; row < 2 * 4 * 141; ++row) {
      const bool is_hidden = hides(row % 141);
      for (size_t c = 0; c < 17; ++c)
        REQUIRE(found[0][17 * row + c] ==
                (is_hidden ? Approx(0) : Approx(whole[0][17 * row + c]).margin(1e-5)));
      for (size_t c = 0; c < 24; ++c)
        REQUIRE(found[1][24 * row + c] ==
                (is_hidden ? Approx(0) : Approx(whole[1][24 * row + c]).margin(1e-4)));
    }
  }
}

TEST_CASE("pair formulas: what the formula says of hidden pairs is not used") {
  const Heads x = heads(DType::f32);
  const auto nan_ahead = [](auto, auto, auto i, auto j, auto s) { return j <= i ? s : s * NAN; };
  kernel::AttentionParams found = with(score_formula(nan_ahead)), expected{.scale = scale};
  found.causal = expected.causal = true;
  check_equal(x, found, expected, 1e-5);
  found.causal = false;
  found.formulas.mask = mask_formula([](auto, auto, auto i, auto j) { return j <= i; });
  check_equal(x, found, expected, 1e-5);
}

TEST_CASE("pair formulas: scores are never rounded") {
  const Heads x = heads(DType::f32);
  const auto params = with(score_formula(capped), mask_formula(in_document));
  const auto exact = run(x, params);
  const Autocast autocast(Rounding::bf16);
  const auto found = run(x, [&](const Heads& y) { return attention(y.q, y.k, y.v, params); });
  CHECK((found == exact));
}

TEST_CASE("pair formulas: hidden tiles are skipped, and bounds spare the questions about them") {
  const Heads x = heads(DType::f32, 1024, 1024);
  const auto same = [](auto, auto, auto i, auto j) { return i / 128 == j / 128; };
  const auto bounds = [](auto, auto, auto i) { return KeyBounds{i / 128 * 128, i / 128 * 128 + 128}; };
  const auto counted = [&](std::shared_ptr<const MaskFormula> mask) {
    const auto blocks = std::make_shared<CountedMask>(std::move(mask));
    Count::reset();
    auto result = run(x, with({}, blocks));
    return std::tuple(std::move(result), Count::flops().load(), blocks->count.load());
  };
  const auto everything = [](auto, auto, auto, auto) { return true; };
  const auto [all, all_flops, all_blocks] = counted(mask_formula(everything));
  const auto [found, flops, blocks] = counted(mask_formula(same));
  const auto [bounded, bounded_flops, bounded_blocks] = counted(mask_formula(same, bounds));
  CHECK((found == bounded));
  CHECK(flops == bounded_flops);
  CHECK(static_cast<double>(flops) < 0.2 * static_cast<double>(all_flops));
  CHECK(all_blocks == 2 * 2 * 4 * 16 * 16);  // forward and backward
  CHECK(blocks == all_blocks);
  CHECK(bounded_blocks == all_blocks / 8);
}

TEST_CASE("pair formulas: decoding gives the rows of the whole") {
  const Heads x = heads(DType::f64);
  kernel::AttentionParams params = with(score_formula(alibi), mask_formula(in_document));
  const auto whole = attention(x.q, x.k, x.v, params).to_doubles();
  for (const int64_t count : {1, 5}) {
    params.first_query = 141 - count;
    const Tensor last = contiguous(slice(x.q, 2, 141 - count, 141));
    const auto found = attention(last, x.k, x.v, params).to_doubles();
    for (int64_t n = 0; n < 2 * 4 * count * 17; ++n) {
      const int64_t row = n / 17 / count * 141 + 141 - count + n / 17 % count;
      REQUIRE(found[static_cast<size_t>(n)] ==
              Approx(whole[static_cast<size_t>(row * 17 + n % 17)]).margin(1e-13));
    }
  }
}

TEST_CASE("pair formulas: packed sequences count their own positions") {
  const Heads x = heads(DType::f64);
  const auto packed = [](const Tensor& y) {  // 100 rows of the first sequence, 141 of the second
    return leaf(
        contiguous(concat({slice(slice(y.detach(), 0, 0, 1), 2, 0, 100), slice(y.detach(), 0, 1, 2)}, 2)));
  };
  const PackedSequences rows{Tensor::of<int32_t>(std::vector<int32_t>{0, 100, 241}, Shape{3}), 141};
  kernel::AttentionParams params = with(score_formula(alibi), mask_formula(in_document));
  const auto whole = attention(x.q, x.k, x.v, params).to_doubles();
  params.queries = params.keys = rows;
  const auto found = attention(packed(x.q), packed(x.k), packed(x.v), params).to_doubles();
  for (int64_t h = 0; h < 4; ++h) {
    for (int64_t n = 0; n < 241 * 17; ++n) {
      const int64_t b = n / 17 < 100 ? 0 : 1, i = n / 17 - 100 * b;
      REQUIRE(found[static_cast<size_t>(h * 241 * 17 + n)] ==
              Approx(whole[static_cast<size_t>(((b * 4 + h) * 141 + i) * 17 + n % 17)]).margin(1e-13));
    }
  }
}

TEST_CASE("pair formulas: on stored scores they do what they do in tiles") {
  const Heads x = heads(DType::f64);
  const auto score = score_formula(capped);
  const auto mask = mask_formula(in_document, [](auto, auto, auto) { return KeyBounds{5, 130}; });
  const auto stored = run(x, [&](const Heads& y) {
    const Tensor scores = apply_formula(scale * matmul(y.q, transpose(repeat_keys(y.k), 2, 3)), score);
    return matmul(softmax(apply_mask(scores, mask)), repeat_keys(y.v));
  });
  const auto tiled = run(x, with(score, mask));
  for (size_t n = 0; n < tiled.size(); ++n) CHECK(difference(tiled[n], stored[n]) < 1e-12);
}

TEST_CASE("pair formulas: what does not go together is refused") {
  const Heads x = heads(DType::f32);
  kernel::AttentionParams params = with(score_formula(alibi));
  CHECK_THROWS_WITH(attention(x.q, x.v, x.v, params), containing("they must be [B, H, Tq, d]"));
  params.softcap = 2;
  CHECK_THROWS_WITH(attention(x.q, x.k, x.v, params),
                    containing("a softcap of 2 and a formula of scores. Write the cap into the formula"));
  CHECK_THROWS_WITH(apply_formula(x.q, nullptr),
                    containing("there is no formula. Make one with score_formula()"));
  CHECK_THROWS_WITH(apply_mask(select(x.q, 0, 0), mask_formula(in_document)),
                    containing("scores [4, 141, 24]; they must be [B, H, Tq, Tk]"));
  const Device device = any_device();
  if (device == Device::cpu) return;
  CHECK_THROWS_WITH(
      attention(x.q.to(device), x.k.to(device), x.v.to(device), with(score_formula(alibi))),
      containing("formulas of scores and masks run on the CPU") && containing("to(Device::cpu)"));
}

}  // namespace heed
