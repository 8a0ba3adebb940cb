// Settings of debugging runs: of a short run that tries every part, and of one that tries whether the model
// can learn.
#pragma once

#include "heed/train/config/config.h"

namespace heed {

/// Changes the config to a run of two steps, each with a validation, on as few data as Task::small_data
/// allows: it shows that every part of a run works. A usage error if the command line gives a length. Call it
/// after all other settings.
void fast_dev_run(Config& config);

/// Changes the config to a run that repeats the first `batches` batches of the first epoch, without dropout
/// and label smoothing: a model that can learn drives its loss on them to 0. A usage error for a number below
/// 1, for pre-training, and if the command line sets what is switched off. Call it after all other settings.
void overfit(Config& config, int64_t batches);

}  // namespace heed
