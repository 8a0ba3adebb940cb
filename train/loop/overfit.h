// A run on the same few batches (train.overfit_batches): can the model learn at all?
#pragma once

#include <string>

#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Has the task plan an epoch and gives its number of batches. With train.overfit_batches = N it is always
/// the first epoch, of which the first N batches count; a usage error when it has fewer.
int64_t plan_epoch(const Config& config, int64_t epoch);

/// "loss": the mean loss of the batches that are trained on, evaluating. plan_epoch() was called before.
Scores overfit_scores(const Config& config, Module& model);

/// Whether the model has learned its batches, by the first and the last training loss, in words: by heart
/// (a tenth or less is left), on the way (less than nine tenths), or not.
std::string overfit_verdict(double first, double last);

}  // namespace heed
