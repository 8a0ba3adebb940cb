// Plans and scores a run on the same few batches (train.overfit_batches), to see whether the model can learn.
#pragma once

#include <string>

#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Lets the task plan an epoch and returns its number of batches. With train.overfit_batches = N every epoch
/// is the first N batches of the first epoch; a usage error where that has fewer.
int64_t plan_epoch(const Config& config, int64_t epoch);

/// The score "loss": the mean loss of the model, without dropout, on the batches that it is trained on.
/// plan_epoch() must be called before.
Scores overfit_scores(const Config& config, Module& model);

/// Describes whether the model has learned its batches, by last / first of the training losses: fully up to
/// 0.1, partly below 0.9, else not.
std::string overfit_verdict(double first, double last);

}  // namespace heed
