// Attentions of a program with formulas for scores and masks: in tiles, by the map, in steps, recorded.
#include <cmath>

#include "heed/attention/base/scaled_dot_product_attention.h"
#include "heed/autograd/tape.h"
#include "heed/core/score_formula.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

/// Documents of five tokens, and scores that fall with the distance.
PairFormulas own_formulas(bool with_score) {
  PairFormulas out{.mask = mask_formula([](auto, auto, auto i, auto j) { return i / 5 == j / 5; })};
  if (with_score) {
    out.score = score_formula([](auto, auto h, auto i, auto j, auto s) {
      return s - 0.3 * static_cast<double>((h + 1) * (i - j));
    });
  }
  return out;
}

struct TiledAttention final : ScaledDotProductAttention {
  TiledAttention(const AttentionConfig& config, bool with_score, Rng& rng)
      : ScaledDotProductAttention(config, rng, 0.5), own(own_formulas(with_score)) {}
  PairFormulas formulas(const AttentionInput&) const override { return own; }
  PairFormulas own;
};

struct MapAttention final : ScoredAttention {
  MapAttention(const AttentionConfig& config, bool with_score, Rng& rng)
      : ScoredAttention(config, rng), own(own_formulas(with_score)) {}
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    return matmul(q, transpose(k, 2, 3)) * 0.5;
  }
  PairFormulas formulas(const AttentionInput&) const override { return own; }
  PairFormulas own;
};

Tensor inputs(int64_t length = 13) {
  Rng rng(2);
  const Tensor x(Shape{2, length, 8}, DType::f64);
  fill_normal(x, 0, 2, rng);
  return x;
}

template <class A>
std::unique_ptr<A> made(const AttentionConfig& config, bool with_score) {
  Rng rng(1);
  auto out = std::make_unique<A>(config, with_score, rng);
  convert(*out, DType::f64);
  return out;
}

/// The output of a causal call, and the gradient of its input.
std::pair<std::vector<double>, std::vector<double>> run(Attention& attention) {
  const Tensor x = leaf(inputs());
  const Tensor y = attention.forward({.queries = x, .keys = x, .mask = Mask::causal()});
  backward(sum(square(y)));
  return {y.to_doubles(), grad_of(x).to_doubles()};
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t n = 0; n < found.size(); ++n) REQUIRE(found[n] == Approx(expected[n]).margin(1e-11));
}

}  // namespace

TEST_CASE("pair formulas: in tiles and by the map they are the same, beside modifiers and shared keys") {
  for (const bool with_score : {true, false}) {
    AttentionConfig config{.d_model = 8, .heads = 4, .kv_heads = 2, .causal = true};
    if (with_score) {
      config.modifiers.position = PositionKind::t5;
    } else {
      config.modifiers = Modifiers{.position = PositionKind::rope, .softcap = 1, .sink = Sink::zero};
    }
    CAPTURE(with_score);
    const auto found = run(*made<TiledAttention>(config, with_score)),
               expected = run(*made<MapAttention>(config, with_score));
    check_near(found.first, expected.first);
    check_near(found.second, expected.second);
  }
}

TEST_CASE("pair formulas: a document does not depend on the others, and its map has none of them") {
  const auto attention = made<TiledAttention>({.d_model = 8, .heads = 2, .causal = true}, true);
  const NoGrad no_grad;
  MapRecorder recorder;
  const Tensor x = inputs();
  const AttentionInput input{
      .queries = x, .keys = x, .mask = Mask::causal(), .context = {.recorder = &recorder}};
  const auto whole = attention->forward(input).to_doubles();
  const Tensor first = contiguous(slice(x, 1, 0, 5)), other = concat({first, first, first}, 1);
  const auto changed =
      attention->forward({.queries = other, .keys = other, .mask = Mask::causal()}).to_doubles();
  for (size_t n = 0; n < 5 * 8; ++n) {
    for (const size_t document : {0, 1, 2})
      CHECK(changed[document * 5 * 8 + n] == Approx(whole[n]).margin(1e-12));
  }
  const auto map = recorder.maps.at(0).weights.to_doubles();  // [2, 2, 13, 13]
  for (size_t n = 0; n < map.size(); ++n) {
    const size_t i = n / 13 % 13, j = n % 13;
    REQUIRE((map[n] > 0) == (j <= i && i / 5 == j / 5));
  }
}

TEST_CASE("pair formulas: steps with a cache give what the whole gives") {
  const auto attention = made<TiledAttention>({.d_model = 8, .heads = 2, .causal = true}, true);
  const NoGrad no_grad;
  const Tensor x = inputs();
  const auto whole = attention->forward({.queries = x, .keys = x, .mask = Mask::causal()});
  const auto cache = attention->new_cache();
  for (int64_t t = 0; t < 13; ++t) {
    const Tensor token = contiguous(slice(x, 1, t, t + 1));
    const Tensor y =
        attention->forward({.queries = token, .keys = token, .mask = Mask::causal(), .cache = cache.get()});
    check_near(y.to_doubles(), contiguous(slice(whole, 1, t, t + 1)).to_doubles());
  }
}

TEST_CASE("pair formulas: what a formula says of hidden pairs is not used by maps, either") {
  const AttentionConfig config{.d_model = 8, .heads = 2, .causal = true};
  const auto mapped = made<MapAttention>(config, false), plain = made<MapAttention>(config, false);
  const auto tiled = made<TiledAttention>(config, false);
  const auto nan_ahead =
      score_formula([](auto, auto, auto i, auto j, auto s) { return j <= i ? s : s * NAN; });
  mapped->own.score = nan_ahead;
  tiled->own.score = nan_ahead;
  const auto found = run(*mapped), expected = run(*plain);
  check_near(found.first, expected.first);
  check_near(found.second, expected.second);
  const NoGrad no_grad;
  MapRecorder recorder;
  const Tensor x = inputs();
  const AttentionInput input{
      .queries = x, .keys = x, .mask = Mask::causal(), .context = {.recorder = &recorder}};
  check_near(tiled->forward(input).to_doubles(), expected.first);
  for (const double weight : recorder.maps.at(0).weights.to_doubles()) REQUIRE(weight >= 0);
}

TEST_CASE("pair formulas: a soft cap beside a formula of scores is refused where scores are stored, too") {
  const auto attention =
      made<MapAttention>({.d_model = 8, .heads = 2, .causal = true, .modifiers = {.softcap = 2}}, true);
  CHECK_THROWS_WITH(run(*attention),
                    containing("model.softcap = 2") && containing("cap * tanh(score / cap)"));
}

}  // namespace heed
