// Dot products in tiles.
#include "attention/dotted.h"

namespace heed {

Tensor DottedAttention::score(const Tensor& q, const Tensor& k, const Attend&) const {
  const Tensor products = matmul(q, transpose(k, 2, 3));
  return scale_ == 1 ? products : products * scale_;
}

bool DottedAttention::needs_map(const Attend& call) const {
  const bool bias = call.mask.bias() && call.mask.bias().node();
  return modifiers().has_vectors() ||
         (recording() && (bias || (modifiers().softcap() > 0 && modifiers().relative_is_trained())));
}

Tensor DottedAttention::attend(Heads heads, const Attend& call) {
  const int64_t first_query = recall(heads, call);
  align(heads);
  if (needs_map(call)) return attend_by_map(heads, call, first_query);
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
                    .bias = call.mask.bias(),
                    .relative = modifiers().relative(heads.q, heads.k.extent(2), first_query),
                    .sink = modifiers().sink(heads.q),
                    .softcap = modifiers().softcap(),
                    .dropout = drop ? config().dropout : 0,
                    .draw = drop ? call.pass.noise->next() : Draw{}});
}

}  // namespace heed
