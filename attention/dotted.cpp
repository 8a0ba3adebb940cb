// Dot products in tiles.
#include "attention/dotted.h"

namespace heed {

Tensor DottedAttention::score(const Tensor& q, const Tensor& k, const Attend&) const {
  const Tensor products = matmul(q, transpose(k, 2, 3));
  return scale_ == 1 ? products : products * scale_;
}

Tensor DottedAttention::attend(Heads heads, const Attend& call) {
  const int64_t first_query = recall(heads, call);
  align(heads);
  const Tensor bias = call.mask.bias();
  if (bias && bias.node() && recording()) {
    const Tensor map = weights(heads, call, first_query);
    if (call.pass.probe != nullptr) call.pass.probe->see(*this, map);
    return matmul(dropout(map, config().dropout, call.pass.noise), heads.v);
  }
  if (call.pass.probe != nullptr) {
    const NoTape looking;
    call.pass.probe->see(*this, weights(heads, call, first_query));
  }
  const bool drop = call.pass.noise != nullptr && config().dropout > 0;
  return attention(heads.q, heads.k, heads.v,
                   {.scale = scale_,
                    .causal = call.mask.is_causal(),
                    .first_query = first_query,
                    .key_lengths = call.mask.key_lengths(),
                    .bias = bias,
                    .dropout = drop ? config().dropout : 0,
                    .draw = drop ? call.pass.noise->next() : Draw{}});
}

}  // namespace heed
