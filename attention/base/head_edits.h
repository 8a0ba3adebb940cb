// Runs an attention's heads as a HeadEditor says: with edited maps, then with edited outputs.
#pragma once

#include <functional>

#include "heed/nn/attention.h"

namespace heed {

/// The heads' outputs [B, H, Tq, d] of a call whose context has an editor. `attend` computes them with the
/// context that it is given; `product` multiplies a map [B, H, Tq, Tk] with the values. Fails when a map is
/// to be edited whose product with the values is not the output, as it is for attentions with several maps.
Tensor edited_heads(const Module& attention, const AttentionInput& input,
                    const std::function<Tensor(const AttentionInput&)>& attend,
                    const std::function<Tensor(const Tensor& map)>& product);

}  // namespace heed
