// Reformer and Informer against their formulas, and known properties: limits, hashes, choices.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/core/kernels/content/bucket.h"
#include "heed/core/launch.h"
#include "heed/tests/attention/reference/against.h"
#include "heed/tests/attention/reference/content.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Example;
using reference::Hashing;
using reference::head_of;
using reference::Matrix;
using reference::Values;

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64);
  fill_normal(x, 0, 1, rng);
  return x;
}

double distance(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  double worst = x.size() == y.size() ? 0 : HUGE_VAL;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& config) {
  Rng rng(5);
  auto attention = make_attention(spec, config, rng);
  convert(*attention, DType::f64);
  return attention;
}

Tensor on_heads(Attention& attention, const Tensor& q, const Tensor& k, const Tensor& v,
                const Mask& mask = {}) {
  return dynamic_cast<MultiHeadAttention&>(attention).on_heads({q, k, v}, {.mask = mask});
}

std::string spec_of(const Hashing& o) {
  return text("reformer:rounds=", o.rounds, ",chunk=", o.chunk, ",buckets=", o.buckets,
              ",by=", o.by_bucket ? "bucket" : "chunk", ",ring=", o.ring ? "true" : "false",
              ",once=", o.once ? "true" : "false", ",scale=", o.scale);
}

/// The formula of one head of a reformer with these options.
reference::MapFormula formula_of(const Hashing& given) {
  return [given](const Example& e, const Values& values, int64_t b, int64_t h) {
    std::vector<Matrix> rotations;
    for (int64_t r = 0; r < given.rounds; ++r)
      rotations.push_back(head_of(values.at("rotations"), r, e.d, given.buckets / 2));
    Hashing o = given;
    o.causal = e.causal;
    o.by_bucket = e.causal && given.by_bucket;
    return reference::reformer(head_of(values.at("q"), b * e.H + h, e.N, e.d),
                               head_of(values.at("k"), b * e.H + h, e.N, e.d), rotations, o, e.keys_of(b));
  };
}

}  // namespace

TEST_CASE("reference: reformer in all its forms", "[reformer]") {
  for (const Hashing& o :
       {Hashing{.rounds = 1, .chunk = 4, .buckets = 4, .by_bucket = true},
        Hashing{.rounds = 3, .chunk = 4, .buckets = 2, .by_bucket = true, .once = true, .scale = 0.7},
        Hashing{.rounds = 2, .chunk = 5, .buckets = 6},
        Hashing{.rounds = 2, .chunk = 3, .buckets = 4, .ring = false},
        Hashing{.rounds = 3, .chunk = 6, .buckets = 4, .once = true}}) {
    // In one dimension a key is nearly a step, which central differences do not follow closely.
    for (const Example& e : reference::usual_examples(true, false))
      reference::against(spec_of(o), e, formula_of(o), {}, {"rotations"}, 5e-8);
  }
}

TEST_CASE("reference: reformer with one chunk is shared attention over all keys but oneself", "[reformer]") {
  // Each key appears twice then, which changes nothing.
  const int64_t N = 9, d = 3;
  const auto one = made("reformer:rounds=1,chunk=9", {.d_model = d, .max_length = N});
  const Tensor q = random(Shape{1, 1, N, d}, 1), v = random(Shape{1, 1, N, 2}, 2);
  const Matrix rows(N, d, q.to_doubles());
  Matrix scores(N, N);
  for (int64_t i = 0; i < N; ++i) {
    for (int64_t j = 0; j < N; ++j)
      scores.at(i, j) =
          reference::dot(rows, i, rows, j) / std::sqrt(reference::dot(rows, j, rows, j) + 1e-6 * d);
  }
  const Matrix map = normalised(reference::exponentials(scores, [](int64_t i, int64_t j) { return i != j; }));
  const Matrix y = reference::apply(map, Matrix(N, 2, v.to_doubles()));
  CHECK(distance(on_heads(*one, q, q, v), Tensor::of<double>(y.values, Shape{1, 1, N, 2})) < 1e-12);
}

TEST_CASE("reference: hashes do not see lengths, opposite vectors fall apart", "[reformer]") {
  const int64_t N = 200, d = 8, half = 6;
  const Tensor x = random(Shape{1, 1, 1, N, d}, 1), rotations = random(Shape{1, d, half}, 2);
  const auto bucket = [&](const Tensor& of) {
    const Tensor out(Shape{1, 1, 1, N}, DType::i32);
    launch<kernel::Buckets>(Device::cpu, matmul(of, rotations), true, Tensor(), int64_t{0}, 2 * half, out);
    return out.to_doubles();
  };
  const auto plain = bucket(x), longer = bucket(x * 7.5), opposite = bucket(-x);
  CHECK(plain == longer);
  double least = HUGE_VAL, maximum = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    CHECK(std::fmod(plain[i] + half, 2 * half) == opposite[i]);
    least = std::min(least, plain[i]);
    maximum = std::max(maximum, plain[i]);
  }
  CHECK(least == 0);
  CHECK(maximum == 2 * half - 1);
  // Equal scores: the first. A vector of zeros is in bucket 0.
  CHECK(bucket(x * 0.0) == std::vector<double>(static_cast<size_t>(N)));
}

TEST_CASE("reference: vectors collide the more often the closer they point", "[reformer]") {
  const int64_t draws = 2000, d = 6, half = 4;
  double before = 0;
  for (const double cosine : {-0.5, 0.0, 0.5, 0.8, 0.95, 1.0}) {
    const double sine = std::sqrt(1 - cosine * cosine);
    const Tensor pair = Tensor::of<double>(std::vector<double>{1, 0, 0, 0, 0, 0, cosine, sine, 0, 0, 0, 0},
                                           Shape{1, 1, 1, 2, d});
    const Tensor rotations = random(Shape{draws, d, half}, 3), buckets(Shape{1, 1, draws, 2}, DType::i32);
    launch<kernel::Buckets>(Device::cpu, matmul(pair, rotations), true, Tensor(), int64_t{0}, 2 * half,
                            buckets);
    const auto of = buckets.to_doubles();
    double together = 0;
    for (size_t r = 0; r < static_cast<size_t>(draws); ++r)
      together += of[2 * r] == of[2 * r + 1] ? 1.0 / draws : 0;
    CAPTURE(cosine, together, before);
    CHECK(together > before);
    before = together;
  }
  CHECK(before == Approx(1));
}

TEST_CASE("reformer: rotations are drawn anew in training only if asked for", "[reformer]") {
  const Tensor x = random(Shape{1, 40, 8}, 1);
  for (const bool redraw : {false, true}) {
    const auto one = made(text("reformer:rounds=1,chunk=4,redraw=", redraw ? "true" : "false"),
                          {.d_model = 8, .max_length = 40});
    Rng noise(3);
    const Tensor quiet = one->forward({.queries = x, .keys = x});
    const Tensor first = one->forward({.queries = x, .keys = x, .context = {.rng = &noise}});
    const Tensor second = one->forward({.queries = x, .keys = x, .context = {.rng = &noise}});
    CHECK(distance(one->forward({.queries = x, .keys = x}), quiet) == 0);
    CHECK((distance(first, quiet) > 0) == redraw);
    CHECK((distance(first, second) > 0) == redraw);
  }
}

TEST_CASE("buckets: a decoder remembers no more than the last tokens of each bucket", "[reformer][routing]") {
  for (const char* spec : {"reformer:rounds=2,chunk=3,buckets=4",
                           "reformer:rounds=1,chunk=4,buckets=6,once=true", "routing:clusters=5,window=4"}) {
    CAPTURE(spec);
    Rng rng(3);
    const auto attention =
        make_attention(spec, {.d_model = 8, .heads = 2, .causal = true, .max_length = 300}, rng);
    const Tensor x(Shape{2, 300, 8});
    fill_normal(x, 0, 1, rng);
    const NoGrad quiet;
    const Tensor full = attention->forward({.queries = x, .keys = x, .mask = Mask::causal()});
    const auto cache = attention->new_cache();
    double worst = 0;
    for (int64_t begin = 0, end = 0; begin < 300; begin = end) {
      end = std::min<int64_t>(300, begin + (begin % 50 == 0 ? 7 : 1));
      const Tensor rows = view::slice(x, 1, begin, end);
      const Tensor y =
          attention->forward({.queries = rows, .keys = rows, .mask = Mask::causal(), .cache = cache.get()});
      const auto found = y.to_doubles(), wanted = view::slice(full, 1, begin, end).to_doubles();
      for (size_t n = 0; n < found.size(); ++n) worst = std::max(worst, std::abs(found[n] - wanted[n]));
    }
    CHECK(worst < 1e-5);
    CHECK(cache->length == 300);
    CHECK(dynamic_cast<KeyValueCache&>(*cache).keys.extent(2) <= 4 * 24);
  }
}

TEST_CASE("reformer: the published form has no steps, and odd buckets are refused", "[reformer]") {
  const AttentionConfig config{.d_model = 4, .causal = true, .max_length = 8};
  CHECK_FALSE(made("reformer:by=chunk", config)->new_cache());
  CHECK_THROWS_WITH(made("reformer:buckets=3", config), containing("buckets = 3"));
  CHECK_THROWS_WITH(made("reformer:rounds=0", config), containing("rounds = 0"));
  CHECK_THROWS_WITH(made("reformer:chunk=0", config), containing("chunk = 0"));
}

TEST_CASE("reference: informer, given its samples", "[informer]") {
  for (const std::string options :
       {"strict=true", "strict=false", "strict=true,lazy=mean", "strict=false,lazy=mean"}) {
    for (const int64_t factor : {1, 2}) {
      for (const Example& e : reference::usual_examples(true, true)) {
        Rng rng(7);
        std::vector<double> table;
        for (int64_t i = 0; i < e.N * 3; ++i) table.push_back(static_cast<double>(rng.below(e.M)));
        const Tensor samples = Tensor::of<double>(table, Shape{e.N, 3});
        const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
          const Matrix q = head_of(values.at("q"), b * x.H + h, x.N, x.d),
                       k = head_of(values.at("k"), b * x.H + h, x.M, x.d);
          const int64_t keys = x.keys_of(b), queries = x.cross ? x.N : keys;
          const auto logarithm =
              static_cast<int64_t>(std::ceil(std::log(static_cast<double>(std::max<int64_t>(queries, 1)))));
          const int64_t count = std::min(queries, factor * std::max<int64_t>(1, logarithm));
          const Matrix sampled(x.N, 3, table);
          if (keys == 0) return Matrix(x.N, x.M);
          const bool strict = x.causal && options.starts_with("strict=true");
          const auto exact = strict
                                 ? reference::prob_sparse_records(q, k, sampled, factor, 2 * count, queries)
                                 : reference::prob_sparse_rows(q, k, sampled, count, queries, keys);
          return reference::prob_sparse(q, k, exact, keys, x.causal, options.ends_with("mean"));
        };
        reference::against(text("informer:factor=", factor, ",", options), e, formula, {}, {}, 1e-9,
                           {{"samples", samples}});
      }
    }
  }
}

TEST_CASE("reference: informer that chooses every query is softmax", "[informer]") {
  for (const bool causal : {false, true}) {
    const AttentionConfig config{.d_model = 6, .heads = 2, .causal = causal};
    const Tensor q = random(Shape{2, 2, 19, 3}, 1), k = random(Shape{2, 2, 19, 3}, 2),
                 v = random(Shape{2, 2, 19, 4}, 3);
    const Mask mask = causal ? Mask::causal() : Mask::none();
    const Tensor wanted = on_heads(*made("softmax", config), q, k, v, mask);
    CHECK(distance(on_heads(*made("informer:factor=19", config), q, k, v, mask), wanted) < 1e-14);
    CHECK(distance(on_heads(*made("informer:factor=2", config), q, k, v, mask), wanted) > 1e-3);
  }
}

TEST_CASE("informer: the same samples while evaluating, others in training only if asked for", "[informer]") {
  const Tensor x = random(Shape{1, 60, 8}, 1);
  for (const bool resample : {false, true}) {
    const auto one = made(text("informer:factor=1,resample=", resample ? "true" : "false"), {.d_model = 8});
    Rng noise(3);
    const Tensor quiet = one->forward({.queries = x, .keys = x});
    CHECK(distance(one->forward({.queries = x, .keys = x}), quiet) == 0);
    const Tensor first = one->forward({.queries = x, .keys = x, .context = {.rng = &noise}});
    CHECK((distance(first, quiet) > 0) == resample);
  }
}

TEST_CASE("informer: samples of another length are refused", "[informer]") {
  const auto one = made("informer", {.d_model = 4});
  const Tensor q = random(Shape{1, 1, 6, 4}, 1);
  reference::put_in(*one, "samples", random(Shape{5, 2}, 2));
  CHECK_THROWS_WITH(on_heads(*one, q, q, q), containing("[5, 2]") && containing("6 queries"));
  CHECK_THROWS_WITH(made("informer:factor=0", {.d_model = 4}), containing("factor = 0"));
}

}  // namespace heed
