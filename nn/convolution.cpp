// Convolutions along a sequence, composed of shifted copies and one product.
#include "heed/nn/convolution.h"

#include <algorithm>
#include <cmath>

#include "heed/nn/mask.h"

namespace heed {
namespace {

/// x with zeros at padded positions. [B, T, width]
Tensor without_padding(const Tensor& x, const Tensor& lengths) {
  if (!lengths) return x;
  const Shape shape{x.extent(0), 1, x.extent(1), x.extent(2)};
  const Tensor heads = reshape(x, shape);
  return reshape(heads * Mask::lengths(lengths).padding_mask(heads, 0), x.shape());
}

}  // namespace

Convolution::Convolution(int64_t in, int64_t out, const Taps& taps, Rng& rng, const LinearOptions& options)
    : taps_(taps) {
  if (taps.count < 1 || taps.dilation < 1)
    fail("convolution: ", taps.count, " taps, ", taps.dilation, " apart. Both must be at least 1.");
  if (!taps.causal && taps.count % 2 == 0) {
    fail("convolution: ", taps.count,
         " taps have no middle, so they cannot lie around a position. Use an odd number, or causal taps.");
  }
  weight = init_weight(out, taps.count * in, options.init, rng, options.gain);
  if (options.bias) bias = init_bias(out, taps.count * in, options.init, rng);
}

Tensor Convolution::operator()(const Tensor& x) const {
  const ModuleScope within(this);
  const int64_t batch = x.extent(0), length = x.extent(1), width = x.extent(2);
  // Taps at a distance of the length or more read only zeros, so the padding need not grow beyond it.
  const int64_t dilation = std::min(taps_.dilation, length);
  const int64_t reach = (taps_.count - 1) * dilation;
  const int64_t before = taps_.causal ? reach : reach / 2;
  std::vector<Tensor> padded;
  const auto zeros = [&](int64_t count) {
    if (count > 0) padded.push_back(Tensor::zeros(Shape{batch, count, width}, x.dtype(), x.device()));
  };
  zeros(before);
  padded.push_back(x);
  zeros(reach - before);
  const Tensor wide = padded.size() == 1 ? x : concat(padded, 1);
  std::vector<Tensor> shifted;
  for (int64_t tap = 0; tap < taps_.count; ++tap)
    shifted.push_back(slice(wide, 1, tap * dilation, tap * dilation + length));
  return linear(shifted.size() == 1 ? x : concat(shifted, 2), weight, bias);
}

void Convolution::fields(Fields& f) {
  f.matrix("weight", weight);
  f("bias", bias);
}

GatedConvolution::GatedConvolution(int64_t width, const Taps& taps, Rng& rng)
    : convolution(width, 2 * width, taps, rng) {}

Tensor GatedConvolution::operator()(const Tensor& x, const Tensor& lengths) const {
  const ModuleScope within(this);
  const int64_t width = x.extent(2);
  const Tensor real = without_padding(x, lengths), both = convolution(real);
  const Tensor gated = slice(both, 2, 0, width) * sigmoid(slice(both, 2, width, 2 * width));
  return without_padding((real + gated) * std::sqrt(0.5), lengths);
}

void GatedConvolution::fields(Fields& f) { f("convolution", convolution); }

namespace {

int64_t half_of(int64_t width) {
  if (width < 2 || width % 2 != 0)
    fail("dilated convolution: a width of ", width,
         ", of which its inner layers take half. Use an even one.");
  return width / 2;
}

}  // namespace

DilatedConvolution::DilatedConvolution(int64_t width, const Taps& taps, Rng& rng)
    : first(half_of(width) * 2, {}),
      second(width / 2, {}),
      third(width / 2, {}),
      down(width, width / 2, rng),
      convolution(width / 2, width / 2, taps, rng),
      up(width / 2, width, rng) {}

Tensor DilatedConvolution::operator()(const Tensor& x, const Tensor& lengths) const {
  const ModuleScope within(this);
  const Tensor real = without_padding(x, lengths);
  // Norm and bias make padding nonzero again, which the convolution must not read.
  const Tensor inner = without_padding(relu(second(down(relu(first(real))))), lengths);
  const Tensor y = up(relu(third(convolution(inner))));
  return without_padding(real + y, lengths);
}

void DilatedConvolution::fields(Fields& f) {
  f("first", first);
  f("down", down);
  f("second", second);
  f("convolution", convolution);
  f("third", third);
  f("up", up);
}

}  // namespace heed
