// Computes the outputs of an attention's heads with the maps and outputs that a HeadEditor replaces.
#pragma once

#include <functional>

#include "heed/nn/attention.h"

namespace heed {

/// `original` with the chosen heads of `replacement`, both [B, H, ...]; other heads keep their bits.
Tensor with_heads_replaced(const Tensor& original, const Tensor& replacement,
                           const std::vector<int64_t>& chosen);

/// The outputs of the heads [B, H, Tq, d] of a call whose context has an editor. `attend` computes them for a
/// call; `product` multiplies a map [B, H, Tq, Tk] with the values. Fails when a map is to be edited whose
/// product with the values is not the output, as is the case for attentions with several maps.
Tensor edited_heads(const Module& attention, const AttentionInput& input,
                    const std::function<Tensor(const AttentionInput&)>& attend,
                    const std::function<Tensor(const Tensor& map)>& product);

}  // namespace heed
