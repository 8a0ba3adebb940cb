// Models for Hugging Face's Transformers whose attention is in a modelling file of ours.
#pragma once

#include <optional>
#include <string>

#include "heed/core/io/json.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// What modeling_heed.py needs of an attention: the map of queries and keys, the coefficients of the weights
/// by the degree of the score, its scale, and the epsilon of their sum. None for an attention that this file
/// does not have: it has `linear`, and `fastmax` with normalise = std or none and without guard. `head_dim`:
/// the width of a head, which scales scores of normalise = none.
std::optional<Json> polynomial_settings(const std::string& spec, int64_t head_dim);

/// Makes the config.json of a GPT-2 or LLaMA one of a model with this attention, and returns the file with
/// its code, modeling_heed.py.
NamedBytes add_attention_code(Json& config, Json attention);

}  // namespace heed
