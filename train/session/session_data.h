// The data of a session of training.
#pragma once

#include "heed/core/distributed/process_group.h"
#include "heed/train/config/config.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// Reads the data. Tokenizers come from `known`, a checkpoint; where it is null the first member trains them,
/// and the others take them. Fails (Fault::data) where the members do not read the same data.
void load_data(Config& config, const Checkpoint* known, Progress& progress, ProcessGroup& group);

/// Fails unless the data, which are loaded, are those that the run began with: a resumed run would not end
/// with the same bits. A file may have another name. A manifest without hashes is not checked.
void check_same_data(const Config& config, const RunFolder& folder);

}  // namespace heed
