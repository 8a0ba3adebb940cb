// tests nn/convolution.h
#include "heed/nn/convolution.h"

#include <cmath>

#include "heed/autograd/gradcheck.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/sequences.h"

namespace heed {
namespace {

using test::apart;
using test::lengths;
using test::normal;

/// Small biases, so that a test can tell padding from zeros.
void fill_biases(Module& module) {
  for (const Named& named : parameters(module)) {
    if (!named.name.ends_with("bias")) continue;
    Rng rng(7);
    fill_normal(*named.tensor, 0, 0.5, rng);
  }
}

using Rows = std::vector<std::vector<double>>;  // [T][width]

Rows rows_of(const Tensor& x, int64_t sequence) {
  const std::vector<double> all = x.to_doubles();
  const int64_t length = x.extent(1), width = x.extent(2);
  Rows out(static_cast<size_t>(length));
  for (int64_t t = 0; t < length; ++t) {
    const auto at = all.begin() + (sequence * length + t) * width;
    out[static_cast<size_t>(t)].assign(at, at + width);
  }
  return out;
}

/// The sum over taps, by its definition: y[t][o] = b[o] + sum over taps j and inputs i of w[o][j in + i] x[t
/// + ...].
Rows plain_convolution(const Rows& x, const Tensor& weight, const Tensor& bias, const Taps& taps) {
  const std::vector<double> w = weight.to_doubles(), b = bias.to_doubles();
  const auto length = static_cast<int64_t>(x.size()), in = static_cast<int64_t>(x[0].size());
  const int64_t out = weight.extent(0);
  const int64_t before = (taps.count - 1) * taps.dilation / (taps.causal ? 1 : 2);
  Rows y(x.size(), std::vector<double>(static_cast<size_t>(out)));
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = b[static_cast<size_t>(o)];
      for (int64_t j = 0; j < taps.count; ++j) {
        const int64_t place = t - before + j * taps.dilation;
        if (place < 0 || place >= length) continue;
        for (int64_t i = 0; i < in; ++i)
          sum += w[static_cast<size_t>((o * taps.count + j) * in + i)] *
                 x[static_cast<size_t>(place)][static_cast<size_t>(i)];
      }
      y[static_cast<size_t>(t)][static_cast<size_t>(o)] = sum;
    }
  }
  return y;
}

/// Layer norm without bias, then ReLU. The gains of fresh layers are 1.
Rows plain_norm_relu(Rows x) {
  for (std::vector<double>& row : x) {
    double mean = 0, variance = 0;
    const auto width = static_cast<double>(row.size());
    for (const double value : row) mean += value / width;
    for (const double value : row) variance += (value - mean) * (value - mean) / width;
    for (double& value : row) value = std::max(0.0, (value - mean) / std::sqrt(variance + 1e-5));
  }
  return x;
}

void check_rows(const Rows& a, const Rows& b) {
  REQUIRE(a.size() == b.size());
  for (size_t t = 0; t < a.size(); ++t) {
    REQUIRE(a[t].size() == b[t].size());
    for (size_t i = 0; i < a[t].size(); ++i) CHECK(a[t][i] == Approx(b[t][i]).margin(1e-9));
  }
}

const std::vector<Taps> all_taps{{1, 1, false}, {3, 1, false}, {3, 2, false},
                                 {5, 1, false}, {2, 1, true},  {3, 4, true}};

}  // namespace

TEST_CASE("convolution: the sum over taps, around a position or before it") {
  for (const Taps& taps : all_taps) {
    CAPTURE(taps.count, taps.dilation, taps.causal);
    Rng rng(1);
    Convolution layer(4, 6, taps, rng);
    convert(layer, DType::f64);
    fill_biases(layer);
    const Tensor x = normal(Shape{2, 7, 4}, 2), y = layer(x);
    REQUIRE(y.shape() == Shape{2, 7, 6});
    for (const int64_t sequence : {0, 1})
      check_rows(rows_of(y, sequence),
                 plain_convolution(rows_of(x, sequence), layer.weight, layer.bias, taps));
  }
}

TEST_CASE("convolution: ConvS2S's layer is its formula, and padding neither enters nor leaves it") {
  for (const Taps& taps : all_taps) {
    CAPTURE(taps.count, taps.dilation, taps.causal);
    Rng rng(1);
    GatedConvolution layer(4, taps, rng);
    convert(layer, DType::f64);
    fill_biases(layer);
    const Tensor x = normal(Shape{1, 6, 4}, 2);
    const Rows plain = rows_of(x, 0);
    Rows expected = plain_convolution(plain, layer.convolution.weight, layer.convolution.bias, taps);
    for (size_t t = 0; t < expected.size(); ++t) {
      std::vector<double> row(4);
      for (size_t i = 0; i < 4; ++i)
        row[i] = std::sqrt(0.5) * (plain[t][i] + expected[t][i] / (1 + std::exp(-expected[t][i + 4])));
      expected[t] = row;
    }
    check_rows(rows_of(layer(x, {}), 0), expected);
    // A sequence of four in a batch of six positions is the sequence of four alone, then zeros.
    const Tensor padded = layer(x, lengths({4})), alone = layer(slice(x, 1, 0, 4), {});
    CHECK(apart(slice(padded, 1, 0, 4), alone) < 1e-12);
    CHECK(apart(slice(padded, 1, 4, 6), Tensor::zeros(Shape{1, 2, 4}, DType::f64)) == 0);
  }
}

TEST_CASE("convolution: ByteNet's block is its formula, and padding neither enters nor leaves it") {
  for (const Taps& taps : all_taps) {
    CAPTURE(taps.count, taps.dilation, taps.causal);
    Rng rng(1);
    DilatedConvolution layer(8, taps, rng);
    convert(layer, DType::f64);
    fill_biases(layer.convolution);
    fill_biases(layer.down);
    fill_biases(layer.up);
    const Tensor x = normal(Shape{1, 9, 8}, 2);
    const auto product = [](const Rows& rows, const Linear& by) {
      return plain_convolution(rows, by.weight, by.bias, {1, 1, false});
    };
    Rows y = product(plain_norm_relu(rows_of(x, 0)), layer.down);
    y = plain_convolution(plain_norm_relu(y), layer.convolution.weight, layer.convolution.bias, taps);
    y = product(plain_norm_relu(y), layer.up);
    const Rows plain = rows_of(x, 0);
    for (size_t t = 0; t < y.size(); ++t) {
      for (size_t i = 0; i < y[t].size(); ++i) y[t][i] += plain[t][i];
    }
    check_rows(rows_of(layer(x, {}), 0), y);
    fill_biases(layer);  // also those of the norms, after which padding is not 0
    const Tensor padded = layer(x, lengths({5})), alone = layer(slice(x, 1, 0, 5), {});
    CHECK(apart(slice(padded, 1, 0, 5), alone) < 1e-12);
    CHECK(apart(slice(padded, 1, 5, 9), Tensor::zeros(Shape{1, 4, 8}, DType::f64)) == 0);
  }
}

TEST_CASE("convolution: gradients are those of central differences") {
  for (const Taps& taps : all_taps) {
    CAPTURE(taps.count, taps.dilation, taps.causal);
    Rng rng(1);
    GatedConvolution gated(8, taps, rng);
    DilatedConvolution dilated(8, taps, rng);  // norms of two numbers are too steep to difference
    for (Module* module : std::initializer_list<Module*>{&gated, &dilated}) {
      convert(*module, DType::f64);
      fill_biases(*module);
      std::vector<Tensor> leaves{leaf(normal(Shape{2, 5, 8}, 3))};
      for (const Named& named : parameters(*module)) leaves.push_back(*named.tensor);
      const auto f = [&] {
        return module == &gated ? gated(leaves[0], lengths({5, 3})) : dilated(leaves[0], lengths({5, 3}));
      };
      const GradcheckReport report = gradcheck(f, leaves, {.samples = 8});
      INFO(to_string(report));
      CHECK(report.passed);
    }
  }
}

TEST_CASE("convolution: what cannot be is refused in words") {
  Rng rng(1);
  CHECK_THROWS_WITH(Convolution(4, 4, {.count = 0}, rng), containing("0 taps"));
  CHECK_THROWS_WITH(Convolution(4, 4, {.dilation = 0}, rng), containing("0 apart"));
  CHECK_THROWS_WITH(Convolution(4, 4, {.count = 4}, rng), containing("4 taps have no middle"));
  CHECK_THROWS_WITH(DilatedConvolution(5, {}, rng), containing("a width of 5"));
}

}  // namespace heed
