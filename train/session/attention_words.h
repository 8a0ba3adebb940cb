// Which attentions a model has, in words.
#pragma once

#include <string>

#include "heed/nn/module.h"
#include "heed/train/config/config.h"

namespace heed {

/// Which attentions the model has: not all of the settings are of every model. Empty where only the task
/// knows.
std::string attention_words(const Config& config, Module& model);

}  // namespace heed
