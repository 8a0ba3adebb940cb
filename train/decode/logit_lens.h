// The logits of a model's layers as a LensView: which tokens each layer would predict.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/attention/inspect/lens_view.h"
#include "heed/core/tensor.h"

namespace heed {

/// The lens of layer_logits() of a model for one sequence: [1, T, V] of the embeddings and of each block.
/// `piece` spells a token; each cell gets the `best` most probable ones. Probabilities are computed in f64.
/// The caller sets caption, tokens and next. Fault::numeric where a logit is not finite.
LensView lens_view(const std::vector<Tensor>& logits, const std::function<std::string(int32_t)>& piece,
                   int64_t best = 5);

}  // namespace heed
