// The data of a session of training.
#pragma once

#include "heed/core/distributed/process_group.h"
#include "heed/train/config/config.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// Reads the data. Tokenizers come from `known`, a checkpoint; where it is null the first member trains them,
/// and the others take them. Fails (Fault::data) where the members do not read the same data.
void load_data(Config& config, const Checkpoint* known, Progress& progress, ProcessGroup& group);

}  // namespace heed
