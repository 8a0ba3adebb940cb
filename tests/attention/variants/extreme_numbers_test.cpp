// Tests the variants with extreme numbers, padding, and dropped weights.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/attention/reference/projections.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

Tensor normal(const Shape& shape, uint64_t seed, double deviation, DType dtype) {
  Rng rng(seed);
  const Tensor x(shape, dtype);
  fill_normal(x, 0, deviation, rng);
  return x;
}

std::unique_ptr<Attention> made(const std::string& spec, AttentionConfig config, DType dtype) {
  Rng rng(3);
  auto attention = make_attention(spec, config, rng);
  convert(*attention, dtype);
  return attention;
}

MultiHeadAttention& multi_head(Attention& attention) { return dynamic_cast<MultiHeadAttention&>(attention); }

}  // namespace

TEST_CASE("edges: maps of features hold where sums are huge or tiny", "[performer][linear][fastmax]") {
  for (const auto& [spec, width, deviation] :
       {std::tuple{"performer", 64, 5.0}, std::tuple{"performer", 4, 8.0}, std::tuple{"linear", 8, 15.0},
        std::tuple{"fastmax:p=12,normalise=none,denum_term=1", 8, 12.0}}) {
    CAPTURE(spec, width, deviation);
    const Shape shape{1, 1, 48, width};
    const auto attention = made(spec, {.d_model = width, .causal = true, .max_length = 48}, DType::f32);
    const Heads heads{normal(shape, 1, deviation, DType::f32), normal(shape, 2, deviation, DType::f32),
                      normal(shape, 3, 1, DType::f32)};
    MapRecorder recorder;
    const NoGrad quiet;
    const Tensor y =
        multi_head(*attention).on_heads(heads, {.mask = Mask::causal(), .context = {.recorder = &recorder}});
    const Tensor& map = recorder.maps.at(0).weights;
    for (const double row : sum(map, 3).to_doubles()) CHECK(row == Approx(1).epsilon(1e-4));
    CHECK(test::distance(matmul(map, heads.v), y.to_doubles()) < 2e-3);
  }
}

TEST_CASE("edges: a kernel whose weights are all zero gives zeros, and hurts no other row", "[kernel]") {
  for (const char* spec : {"kernel:kernel=linear", "kernel:kernel=poly,degree=2,offset=0"}) {
    CAPTURE(spec);
    auto q = normal(Shape{1, 1, 6, 3}, 1, 1, DType::f64).to_doubles();
    for (size_t c = 0; c < 3; ++c) q[2 * 3 + c] = 0;
    const Heads heads{leaf(Tensor::of<double>(q, Shape{1, 1, 6, 3})),
                      leaf(normal(Shape{1, 1, 5, 3}, 2, 1, DType::f64)),
                      leaf(normal(Shape{1, 1, 5, 3}, 3, 1, DType::f64))};
    const auto attention = made(spec, {.d_model = 3, .cross = true}, DType::f64);
    const Tensor y = multi_head(*attention).on_heads(heads, {});
    const auto out = y.to_doubles();
    for (size_t c = 0; c < 3; ++c) CHECK(out[2 * 3 + c] == 0);
    backward(sum(square(y)));
    double max_gradient = 0;
    for (const Tensor& x : {heads.q, heads.k, heads.v}) {
      for (const double slope : grad_of(x).to_doubles())
        max_gradient = std::max(max_gradient, std::abs(slope));
    }
    CHECK(std::isfinite(max_gradient));
    CHECK(max_gradient < 1e6);
  }
}

TEST_CASE("edges: fastmax over the largest norm does not see padding", "[fastmax]") {
  for (const char* spec : {"fastmax:normalise=scaled", "fastmax:normalise=maxnorm,centre=tokens",
                           "fastmax:normalise=maxnorm,centre=features"}) {
    CAPTURE(spec);
    const int64_t length = 20, columns = 100, width = 8;
    const auto attention = made(spec, {.d_model = width, .heads = 2}, DType::f64);
    const Tensor padded = normal(Shape{1, columns, width}, 1, 3, DType::f64);
    const Tensor alone = contiguous(view::slice(padded, 1, 0, length));
    const NoGrad quiet;
    const Mask mask = Mask::lengths(Tensor::of<int32_t>(std::vector<int32_t>{20}, Shape{1}));
    const Tensor y = attention->forward({.queries = padded, .keys = padded, .mask = mask});
    const Tensor want = attention->forward({.queries = alone, .keys = alone});
    CHECK(test::distance(contiguous(view::slice(y, 1, 0, length)), want.to_doubles()) < 1e-12);
  }
}

TEST_CASE("edges: dropout of segments and clusters is on what values give, and leaves the mean",
          "[hat][h_transformer]") {
  for (const auto& [spec, causal] :
       {std::pair{"hat:segment=8,cross=false", false}, std::pair{"h_transformer:block=2", false},
        std::pair{"h_transformer:block=2", true}}) {
    CAPTURE(spec, causal);
    const int64_t length = 24;
    const auto attention =
        made(spec, {.d_model = 4, .causal = causal, .max_length = length, .dropout = 0.25}, DType::f64);
    const Heads heads{normal(Shape{1, 1, length, 4}, 1, 1, DType::f64),
                      normal(Shape{1, 1, length, 4}, 2, 1, DType::f64),
                      normal(Shape{1, 1, length, 4}, 3, 1, DType::f64)};
    const Mask mask = causal ? Mask::causal() : Mask::none();
    const NoGrad quiet;
    const auto want = multi_head(*attention).on_heads(heads, {.mask = mask}).to_doubles();
    constexpr int draws = 2000;
    std::vector<double> mean(want.size(), 0), square(want.size(), 0);
    Rng noise(5);
    for (int n = 0; n < draws; ++n) {
      const auto y =
          multi_head(*attention).on_heads(heads, {.mask = mask, .context = {.rng = &noise}}).to_doubles();
      for (size_t i = 0; i < y.size(); ++i) {
        mean[i] += y[i] / draws;
        square[i] += y[i] * y[i] / draws;
      }
      noise.advance();
    }
    for (size_t i = 0; i < want.size(); ++i) {
      const double variance = square[i] - mean[i] * mean[i];
      CHECK(variance > 0);
      CHECK(std::abs(mean[i] - want[i]) <= 5 * std::sqrt(variance / draws));
    }
  }
}

TEST_CASE("edges: places of errors that 32 bits cannot tell apart are refused", "[structured]") {
  for (const char* spec : {"structured:eps=0.1", "band_sparse_error"}) {
    Rng rng(1);
    CHECK_THROWS_WITH(make_attention(spec, {.d_model = 2, .max_length = 46341}, rng),
                      Catch::Contains("max_length = 46341") && Catch::Contains("46340"));
  }
}

TEST_CASE("edges: the commitment of routing is a mean over tokens that are there", "[routing]") {
  const auto commitment = [](int64_t columns) {
    const auto attention = made("routing:clusters=2", {.d_model = 4}, DType::f64);
    const Tensor padded = normal(Shape{1, 40, 4}, 1, 1, DType::f64);
    const Tensor x = contiguous(view::slice(padded, 1, 0, columns));
    AuxiliaryLosses terms;
    Rng noise(1);
    attention->forward({.queries = x,
                        .keys = x,
                        .mask = Mask::lengths(Tensor::of<int32_t>(std::vector<int32_t>{20}, Shape{1})),
                        .context = {.rng = &noise, .losses = &terms}});
    return terms.sum().item();
  };
  CHECK(commitment(40) == Approx(commitment(20)).epsilon(1e-9));
}

}  // namespace heed
