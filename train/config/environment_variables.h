// Settings from the environment: HEED_TRAIN_LEARNING_RATE is train.learning_rate.
#pragma once

#include "heed/train/config/config.h"

namespace heed {

/// Sets what variables such as HEED_TRAIN_LEARNING_RATE say. A variable that looks like one, and is a setting
/// of no task, is refused with the nearest.
void from_environment(Config& config);

}  // namespace heed
