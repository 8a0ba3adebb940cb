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

bool ScaledDotProductAttention::attends_packed(const AttentionInput& input) const {
  return !needs_map(input) && !(recording() && modifiers().has_trained_sink());
}

Tensor ScaledDotProductAttention::attend(Heads heads, const AttentionInput& input) {
  const int64_t first_query = read_cache(heads, input);
  transform_heads(heads);
  if (input.context.recorder != nullptr) input.context.recorder->factors(*this, heads.q, heads.k, scale_);
  if (needs_map(input)) return attend_by_map(heads, input, first_query);
  record_map(input, [&] { return weights(heads, input, first_query); });
  kernel::AttentionParams call = masked_params(input, scale_, first_query);
  const int64_t queries = call.queries ? call.queries.longest : heads.q.extent(2),
                keys = call.keys ? call.keys.longest : heads.k.extent(2);
  call.relative = modifiers().distance_bias(heads.q, queries, keys, first_query);
  call.sink = modifiers().sink(heads.q);
  call.softcap = modifiers().softcap();
  call.formulas = formulas(input);
  return attention(heads.q, heads.k, heads.v, call);
}

}  // namespace heed
