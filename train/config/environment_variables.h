// Settings from the environment: HEED_TRAIN_LEARNING_RATE is train.learning_rate.
#pragma once

#include "heed/train/config/config.h"

namespace heed {

/// Sets the settings named by variables such as HEED_TRAIN_LEARNING_RATE. A usage error with the nearest name
/// for a variable that begins with a group's name and is no setting of any task.
void from_environment(Config& config);

/// The environment of this process, as execve() takes it, without variables of settings: for a subprocess
/// that gets all settings by arguments and files.
std::vector<char*> environment_without_settings();

}  // namespace heed
