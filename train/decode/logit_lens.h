// The logit lens: the tokens that each layer of a model would predict.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/attention/inspect/lens_view.h"
#include "heed/core/tensor.h"

namespace heed {

/// The lens of a model's layer_logits() for one sequence: [1, T, V] of the embeddings and of each block.
/// `piece` spells a token; each cell has the `best` most probable tokens. Probabilities are computed in f64.
/// The caller sets caption, tokens and next. Fault::numeric for a logit that is not finite.
LensView lens_view(const std::vector<Tensor>& logits, const std::function<std::string(int32_t)>& piece,
                   int64_t best = 5);

}  // namespace heed
