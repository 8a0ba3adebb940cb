// The data of a session of training.
#pragma once

#include "heed/core/distributed/process_group.h"
#include "heed/train/config/config.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// Loads the data in every process of the group. Tokenizers come from the checkpoint; where it is null, the
/// first process trains them and sends them to the others. Fault::data where the processes read different
/// data.
void load_data(Config& config, const Checkpoint* checkpoint, Progress& progress, ProcessGroup& group);

/// Fails unless the loaded data are those that the run began with: else a resumed run would not end with the
/// same bits. A file may have another name. A manifest without hashes is not checked.
void check_same_data(const Config& config, const RunFolder& folder);

}  // namespace heed
