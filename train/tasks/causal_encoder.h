// Whether the attention of an encoder goes with what its tokens may look at.
#pragma once

#include "heed/train/config/config.h"

namespace heed {

/// Fails where attention.encoder has one that cannot look back only, which `setting` ("data.causal = true")
/// asks for, or, unless `causal`, one that looks back only. The errors name the setting that makes it work.
void check_encoder_attention(const Config& config, bool causal, const char* setting);

}  // namespace heed
