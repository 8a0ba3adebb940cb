// Settings of debugging runs, made while a model or task is being written: does every part work, can the
// model learn?
#pragma once

#include "heed/train/config/config.h"

namespace heed {

/// Makes it a run of two steps, with a validation after each, on as few data as the task's settings allow
/// (Task::small_data): every part of a run works, whatever its numbers. A usage error where the command line
/// gives a length, which would be ignored without notice. Call it after all other settings.
void fast_dev_run(Config& config);

/// Makes it a run on the first `batches` batches of the first epoch, again and again (train.overfit_batches),
/// without dropout and label smoothing: a model that can learn drives its loss on them to 0. A usage error
/// for a number below 1, for pre-training, and where the command line asks for what is switched off. Call it
/// after all other settings.
void overfit(Config& config, int64_t batches);

}  // namespace heed
