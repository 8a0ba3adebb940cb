// The depthwise convolution before attention, all at once and step by step.
#include "heed/nn/short_convolution.h"

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"

namespace heed {
namespace {

/// x [B, T, width] with zeros in place of padding, also of padding that is not finite. `first`: the position
/// of the first row of x.
Tensor zero_padding(const Tensor& x, const Mask& mask, int64_t first) {
  if (!mask.key_lengths()) return x;
  const Tensor finite = mask.finite_padding(x, first);
  const Tensor heads = reshape(finite, Shape{x.extent(0), 1, x.extent(1), x.extent(2)});
  return reshape(heads * mask.padding_mask(heads, first), x.shape());
}

}  // namespace

ShortConvolution::ShortConvolution(int64_t width, int64_t taps, bool causal, Rng& rng) : causal_(causal) {
  if (taps < 1) fail("short convolution: ", taps, " taps. There must be at least 1.");
  const int64_t own_tap = causal ? taps - 1 : (taps - 1) / 2;
  std::vector<float> identity(static_cast<size_t>(width * taps), 0.0F);
  for (int64_t c = 0; c < width; ++c) identity[static_cast<size_t>(c * taps + own_tap)] = 1;
  const Tensor noise = normal_parameter(Shape{width, taps}, 0.02, rng).detach();
  weight = leaf(noise + Tensor::of<float>(identity, noise.shape(), noise.device()));
}

Tensor ShortConvolution::operator()(const Tensor& given, const Mask& mask, AttentionCache* cache) const {
  const ModuleScope within(this);
  if (given.dtype() == DType::bf16)
    return cast((*this)(cast(given, weight.dtype()), mask, cache), DType::bf16);
  if (const auto& packing = mask.query_packing()) {
    const Tensor padded = packing->padded(given);
    const Tensor x = packing->key_lengths() ? zero_padding(padded, mask.of_padded(), 0) : padded;
    return packing->packed(depthwise_convolution(x, weight, causal_));
  }
  const int64_t length = given.extent(1), num_earlier = weight.extent(1) - 1;
  const Tensor x = zero_padding(given, mask, cache != nullptr ? cache->length : 0);
  if (cache == nullptr) return depthwise_convolution(x, weight, causal_);
  auto* own = dynamic_cast<Cache*>(cache);
  if (own == nullptr)
    fail("short convolution: this cache is another module's. Use the one from new_cache().");
  own->length += length;
  if (num_earlier == 0) return depthwise_convolution(x, weight, causal_);
  if (!own->inputs)
    own->inputs = Tensor::zeros(Shape{x.extent(0), num_earlier, x.extent(2)}, x.dtype(), x.device());
  const Tensor all = concat({own->inputs, x}, 1);
  own->inputs = contiguous(slice(all, 1, length, length + num_earlier));
  return slice(depthwise_convolution(all, weight, causal_), 1, num_earlier, num_earlier + length);
}

std::unique_ptr<AttentionCache> ShortConvolution::new_cache() const {
  return causal_ ? std::make_unique<Cache>() : nullptr;
}

}  // namespace heed
