// Scaled dot-product attention in tiles, or by the map where a gradient needs it.
#include "heed/attention/base/scaled_dot_product_attention.h"

namespace heed {

Tensor ScaledDotProductAttention::score(const Tensor& q, const Tensor& k, const AttentionInput&) const {
  const Tensor products = matmul(q, transpose(k, 2, 3));
  return scale_ == 1 ? products : products * scale_;
}

bool ScaledDotProductAttention::needs_map(const AttentionInput& input) const {
  const bool has_trained_bias = input.mask.bias() && input.mask.bias().node();
  return modifiers().has_position_vectors() ||
         (recording() && (has_trained_bias || (modifiers().softcap() > 0 && modifiers().has_trained_bias())));
}

Tensor ScaledDotProductAttention::attend(Heads heads, const AttentionInput& input) {
  const int64_t first_query = read_cache(heads, input);
  transform_heads(heads);
  if (input.context.recorder != nullptr) input.context.recorder->factors(*this, heads.q, heads.k, scale_);
  if (needs_map(input)) return attend_by_map(heads, input, first_query);
  record_map(input, [&] { return weights(heads, input, first_query); });
  kernel::AttentionParams call = params(input, scale_);
  call.causal = input.mask.is_causal();
  call.first_query = first_query;
  call.key_lengths = input.mask.key_lengths();
  call.bias = input.mask.bias();
  call.relative = modifiers().distance_bias(heads.q, heads.k.extent(2), first_query);
  call.sink = modifiers().sink(heads.q);
  call.softcap = modifiers().softcap();
  return attention(heads.q, heads.k, heads.v, call);
}

}  // namespace heed
