// One session of training, for train and resume.
#pragma once

#include "heed/train/session/distributed_session.h"

namespace heed {

/// Whether the folder of the run is removed at its end: --fast-dev-run without --out and --name.
bool leaves_nothing(const ParsedArguments& arguments);

/// Loads the data, pre-trains where train.pretrain asks for it (train/loop/pretraining.h), trains, scores the
/// model and writes the report. Returns the exit code: 0, or 128 + signal when stopped and saved. Collective:
/// every process of the group calls it, with the same config and checkpoints; only the first writes.
int train_in(Opening& opening, const ParsedArguments& arguments, ProcessGroup& group);

}  // namespace heed
