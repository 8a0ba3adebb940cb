// The masks that fastmax's three dropouts draw: read back exactly, one by one, from sums over keys.
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/linear_attention/polynomial_sums.h"

#include "heed/tests/core/numbers.h"

using namespace heed;
using kernel::PolynomialDropout;

namespace {

constexpr int64_t heads = 4, keys = 64, width = 16, features = 153;  // 1 + 16 + 16 17 / 2
constexpr double rate = 0.25;

/// kept[head, feature, key]: keys are all ones and the value of key j is unit vector j, so that row f of the
/// state holds feature f of every key.
std::vector<double> kept(PolynomialDropout drops, int64_t tick = 2, uint64_t stream = 1) {
  const Tensor k = Tensor::full(Shape{1, heads, keys, width}, 1);
  Tensor v = Tensor::zeros(Shape{1, heads, keys, keys});
  for (int64_t row = 0; row < heads * keys; ++row) v.data<float>()[row * keys + row % keys] = 1;
  const Tensor state(Shape{1, heads, features, keys + 1}, DType::f32);
  const Draw draw{7, stream, Tensor::full(Shape{1}, static_cast<double>(tick), DType::i64)};
  launch_here<kernel::PolynomialSums>(
      k, v,
      kernel::PolynomialParams{.coefficients = {1, 1, 0.5}, .dropout = rate, .drops = drops, .draw = draw},
      state);
  std::vector<double> out;
  const std::vector<double> all = state.to_doubles();
  for (size_t n = 0; n < all.size(); ++n) {
    if (n % (keys + 1) < keys) out.push_back(all[n]);
  }
  return out;
}

double at(const std::vector<double>& kept, int64_t head, int64_t feature, int64_t key) {
  return kept[static_cast<size_t>((head * features + feature) * keys + key)];
}

/// Pairs of which both are dropped, of `count` pairs that are drawn independently, within 4.5 deviations.
bool as_independent(int64_t both, int64_t count) {
  const double share = rate * rate, total = static_cast<double>(count);
  return std::abs(static_cast<double>(both) - share * total) < 4.5 * std::sqrt(total * share * (1 - share));
}

}  // namespace

TEST_CASE("fastmax's dropout: monomials of degree 2 alone, each with a bit of its own") {
  const OnEachDevice here;
  const std::vector<double> own = kept(PolynomialDropout::monomials);
  const std::vector<double> tick = kept(PolynomialDropout::monomials, 3),
                            stream = kept(PolynomialDropout::monomials, 2, 2);
  int64_t dropped = 0, count = 0, heads_both = 0, keys_both = 0, features_both = 0, tick_both = 0,
          stream_both = 0;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t f = 0; f < features; ++f) {
      for (int64_t j = 0; j < keys; ++j) {
        const double x = at(own, h, f, j);
        if (f <= width) {
          REQUIRE(x == 1);
          continue;
        }
        const bool gone = x == 0;
        if (!gone) REQUIRE(std::abs(x - 1 / (1 - rate)) < 1e-6);
        dropped += gone;
        ++count;
        if (!gone) continue;
        heads_both += at(own, (h + 1) % heads, f, j) == 0;
        keys_both += at(own, h, f, (j + 1) % keys) == 0;
        features_both += at(own, h, f + 1 < features ? f + 1 : width + 1, j) == 0;
        tick_both += at(tick, h, f, j) == 0;
        stream_both += at(stream, h, f, j) == 0;
      }
    }
  }
  const double total = static_cast<double>(count);
  CHECK(std::abs(static_cast<double>(dropped) - rate * total) < 4.5 * std::sqrt(total * rate * (1 - rate)));
  CHECK(as_independent(heads_both, count));
  CHECK(as_independent(keys_both, count));
  CHECK(as_independent(features_both, count));
  CHECK(as_independent(tick_both, count));
  CHECK(as_independent(stream_both, count));
}

TEST_CASE("fastmax's dropout: entries fall with every monomial that they are in, tokens as a whole") {
  const OnEachDevice here;
  const std::vector<double> entries = kept(PolynomialDropout::entries),
                            tokens = kept(PolynomialDropout::tokens);
  int64_t dropped = 0, tokens_dropped = 0;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t j = 0; j < keys; ++j) {
      const double token = at(tokens, h, 1, j);
      tokens_dropped += token == 0;
      CHECK(at(entries, h, 0, j) == 1);
      CHECK(at(tokens, h, 0, j) == 1);
      int64_t f = 1 + width;
      for (int64_t a = 0; a < width; ++a) {
        dropped += at(entries, h, 1 + a, j) == 0;
        REQUIRE(at(tokens, h, 1 + a, j) == token);
        for (int64_t b = a; b < width; ++b, ++f) {
          REQUIRE(std::abs(at(entries, h, f, j) - at(entries, h, 1 + a, j) * at(entries, h, 1 + b, j)) <
                  1e-6);
          REQUIRE(std::abs(at(tokens, h, f, j) - token * token) < 1e-6);
        }
      }
    }
  }
  const auto share = [](int64_t gone, int64_t count) {
    const double total = static_cast<double>(count);
    return std::abs(static_cast<double>(gone) - rate * total) < 4.5 * std::sqrt(total * rate * (1 - rate));
  };
  CHECK(share(dropped, heads * keys * width));
  CHECK(share(tokens_dropped, heads * keys));
}
