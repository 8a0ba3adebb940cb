// Tests nn/short_convolution.h, alone and in a block.
#include "heed/nn/short_convolution.h"

#include <cmath>

#include "heed/autograd/gradcheck.h"
#include "heed/nn/block.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"
#include "heed/tests/nn/sequences.h"

namespace heed {
namespace {

using test::apart;
using test::lengths;
using test::normal;

/// A convolution in double precision whose taps are far from the identity.
std::unique_ptr<ShortConvolution> convolution(int64_t width, int64_t taps, bool causal) {
  Rng rng(5);
  auto made = std::make_unique<ShortConvolution>(width, taps, causal, rng);
  convert(*made, DType::f64);
  fill_normal(made->weight.detach(), 0, 1, rng);
  return made;
}

/// y[t][c] = sum over taps j of w[c][j] x[t + j - before][c] among the first `length` positions.
std::vector<double> plain_convolution(const Tensor& x, const Tensor& weight, int64_t before, int64_t length) {
  const std::vector<double> in = x.to_doubles(), w = weight.to_doubles();
  const int64_t width = x.extent(2), taps = weight.extent(1);
  std::vector<double> y;
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < taps; ++j) {
        const int64_t place = t + j - before;
        if (place >= 0 && place < length)
          sum += w[static_cast<size_t>(c * taps + j)] * in[static_cast<size_t>(place * width + c)];
      }
      y.push_back(sum);
    }
  }
  return y;
}

}  // namespace

TEST_CASE("short convolution: taps before the token in a decoder, around it in an encoder") {
  const DefaultDevice device(any_device());
  for (const int64_t taps : {1, 2, 3, 4, 9}) {
    for (const bool causal : {false, true}) {
      const auto layer = convolution(3, taps, causal);
      const Tensor x = normal(Shape{1, 6, 3}, 1);
      const std::vector<double> y = (*layer)(x, Mask::none()).to_doubles();
      const std::vector<double> expected =
          plain_convolution(x, layer->weight, causal ? taps - 1 : (taps - 1) / 2, 6);
      REQUIRE(y.size() == expected.size());
      for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).margin(1e-12));
    }
  }
}

TEST_CASE("short convolution: it starts close to the identity") {
  const DefaultDevice device(any_device());
  const Tensor x = normal(Shape{2, 50, 40}, 1, DType::f32);
  for (const bool causal : {false, true}) {
    Rng rng(3);
    ShortConvolution layer(40, 4, causal, rng);
    CHECK(count_parameters(layer) == 160);
    const double off = apart(layer(x, Mask::none()), x);
    CHECK(off > 0.01);
    CHECK(off < 0.5);
  }
  Rng rng(3);
  CHECK_THROWS_WITH(ShortConvolution(4, 0, true, rng), containing("0 taps"));
}

TEST_CASE("short convolution: gradients of the input and of the taps") {
  for (const bool causal : {false, true}) {
    const auto layer = convolution(2, 4, causal);
    const Tensor x = leaf(normal(Shape{2, 5, 2}, 1)), long_as = lengths({5, 3});
    const std::vector<Tensor> leaves{x, layer->weight};
    CHECK(gradcheck([&] { return sum(square((*layer)(x, Mask::none()))); }, leaves, {}).passed);
    // Outputs at padding are not looked at, as padding is not.
    const auto real = [&] {
      const Tensor y = (*layer)(x, Mask::lengths(long_as));
      return sum(square(slice(y, 0, 0, 1))) + sum(square(slice(slice(y, 0, 1, 2), 1, 0, 3)));
    };
    CHECK(gradcheck(real, leaves, {}).passed);
  }
}

TEST_CASE("short convolution: padding never reaches a real output") {
  const DefaultDevice device(any_device());
  for (const bool causal : {false, true}) {
    const auto layer = convolution(2, 4, causal);
    const Tensor x = normal(Shape{1, 3, 2}, 1), mask = lengths({3});
    const auto padded = [&](double value) {
      const Tensor padding = Tensor::full(Shape{1, 4, 2}, value, DType::f64);
      return slice((*layer)(concat({x, padding}, 1), Mask::lengths(mask)), 1, 0, 3);
    };
    const Tensor alone = (*layer)(x, Mask::none());
    for (const double value : {0.0, 7.0, 1e30, double(INFINITY), double(NAN)})
      CHECK(apart(padded(value), alone) == 0);
  }
}

TEST_CASE("short convolution: step by step as all at once, and rows of the cache follow the beams") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  for (const int64_t taps : {1, 2, 4, 16}) {
    const auto layer = convolution(3, taps, true);
    const Tensor x = normal(Shape{2, 7, 3}, 1), all = (*layer)(x, Mask::causal());
    for (const int64_t step : {1, 3}) {
      const auto cache = layer->new_cache();
      for (int64_t t = 0; t < 7; t += step) {
        const int64_t end = std::min<int64_t>(7, t + step);
        const Tensor y = (*layer)(slice(x, 1, t, end), Mask::causal(), cache.get());
        CHECK(apart(y, slice(all, 1, t, end)) == 0);
        CHECK(cache->length == end);
      }
    }
    const auto cache = layer->new_cache();
    const std::vector<int32_t> order{1, 0, 1};
    const auto beams = [&](const Tensor& y) { return concat({y[1], y[0], y[1]}, 0); };
    (*layer)(slice(x, 1, 0, 5), Mask::causal(), cache.get());
    reorder(*cache, Tensor::of<int32_t>(order, Shape{3}));
    const Tensor rest = slice(x, 1, 5, 6);
    const Tensor y = (*layer)(reshape(beams(rest), Shape{3, 1, 3}), Mask::causal(), cache.get());
    CHECK(apart(y, reshape(beams(slice(all, 1, 5, 6)), Shape{3, 1, 3})) == 0);
  }
  const auto around = convolution(3, 4, false);
  CHECK_FALSE(around->new_cache());
}

TEST_CASE("short convolution: a block convolves the input of its self-attention") {
  const DefaultDevice device(any_device());
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    Rng rng(3);
    const BlockOptions options{
        .width = 6, .feed_forward = 10, .norm_place = place, .short_convolution = 3, .causal = true};
    Block block(options, plain_attention({.d_model = 6, .heads = 2}, rng), nullptr, rng);
    fill_normal(block.short_convolution->weight.detach(), 0, 1, rng);
    CHECK(parameters(block).front().name == "short_convolution.weight");
    const Tensor x = normal(Shape{2, 4, 6}, 1, DType::f32);
    const auto attended = [&](const Tensor& given) {
      const Tensor h = depthwise_convolution(given, block.short_convolution->weight, true);
      return block.attention->forward({.queries = h, .keys = h, .mask = Mask::causal()});
    };
    const auto network = [&](const Tensor& h) { return (*block.feed_forward)(h, nullptr); };
    const auto around = [&](const Tensor& input, const LayerNorm& norm, const auto& part) {
      return place == NormPlace::pre ? input + part(norm(input)) : norm(input + part(input));
    };
    const Tensor y = around(around(x, block.attention_norm, attended), *block.forward_norm, network);
    CHECK(apart(block(x, Mask::causal(), {}, Mask::none(), nullptr, {}), y) < 1e-5);
    CHECK(block.new_cache().convolution);
  }
  Rng rng(3);
  const Block encoder({.width = 6, .feed_forward = 10, .short_convolution = 3},
                      plain_attention({.d_model = 6, .heads = 2}, rng), nullptr, rng);
  CHECK_THROWS_WITH(encoder.new_cache(), containing("cannot decode step by step"));
}

}  // namespace heed
