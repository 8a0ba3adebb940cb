// Dot-product attention in tiles, or by the map where a gradient needs it.
#include "heed/attention/base/scaled_dot_product_attention.h"

namespace heed {

Tensor ScaledDotProductAttention::score(const Tensor& q, const Tensor& k, const AttentionInput&) const {
  const Tensor products = matmul(q, transpose(k, 2, 3));
  return scale_ == 1 ? products : products * scale_;
}

bool ScaledDotProductAttention::needs_map(const AttentionInput& input) const {
  const bool bias = input.mask.bias() && input.mask.bias().node();
  return modifiers().has_vectors() ||
         (recording() && (bias || (modifiers().softcap() > 0 && modifiers().relative_is_trained())));
}

Tensor ScaledDotProductAttention::attend(Heads heads, const AttentionInput& input) {
  const int64_t first_query = read_cache(heads, input);
  align(heads);
  if (input.context.recorder != nullptr) input.context.recorder->factors(*this, heads.q, heads.k, scale_);
  if (needs_map(input)) return attend_by_map(heads, input, first_query);
  if (input.context.recorder != nullptr) {
    const NoGrad no_grad;
    input.context.recorder->record(*this, weights(heads, input, first_query));
  }
  const bool drop = input.context.training() && config().dropout > 0;
  return attention(heads.q, heads.k, heads.v,
                   {.scale = scale_,
                    .causal = input.mask.is_causal(),
                    .first_query = first_query,
                    .key_lengths = input.mask.key_lengths(),
                    .bias = input.mask.bias(),
                    .relative = modifiers().relative(heads.q, heads.k.extent(2), first_query),
                    .sink = modifiers().sink(heads.q),
                    .softcap = modifiers().softcap(),
                    .dropout = drop ? config().dropout : 0,
                    .draw = drop ? input.context.rng->next() : Draw{}});
}

}  // namespace heed
