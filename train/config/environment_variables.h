// Settings from the environment: HEED_TRAIN_LEARNING_RATE is train.learning_rate.
#pragma once

#include "heed/train/config/config.h"

namespace heed {

/// Sets the settings that variables such as HEED_TRAIN_LEARNING_RATE name. A usage error with the nearest
/// name for a variable that looks like one and is a setting of no task.
void from_environment(Config& config);

/// The environment of this process without the variables of settings of any task, as execve() takes it: for a
/// subprocess whose arguments and files have all its settings already.
std::vector<char*> environment_without_settings();

}  // namespace heed
