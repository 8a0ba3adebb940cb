// The size of an attention's state while text is generated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/nn/attention.h"

namespace heed {

/// The numbers that a query head of this attention, made causal, keeps after `length` tokens: 2 length d for
/// a key-value cache, d (d + 1) or the like for a linear attention. `text` as LayeredSpec has it: the mean
/// over config.layers layers. Empty where one of them has no causal form or does not decode step by step.
/// Runs each attention once on random input.
std::optional<double> state_size(const std::string& text, AttentionConfig config, int64_t length);

}  // namespace heed
