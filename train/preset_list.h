// The groups of named recipes; each is defined in the file of its name.
#pragma once

#include <span>

#include "train/config.h"

namespace heed::preset {
std::span<const Preset> language();  ///< train/presets_lm.cpp
std::span<const Preset> digits();    ///< train/presets_mnist.cpp
}  // namespace heed::preset
