// What train and resume share: the head of a run, its end, its report.
#pragma once

#include "heed/train/session/distributed_session.h"

namespace heed {

/// Whether the folder of this call's run is removed at its end: --fast-dev-run without --out and --name.
bool leaves_nothing(const ParsedArguments& arguments);

/// Loads the data, trains (tokens first, where train.pretrain says so: see train/loop/pretraining.h), scores,
/// writes the report. Returns the exit code: 0, or 128 + signal when stopped and saved. The members
/// of a group call this together, all with the same config and checkpoints; the first alone writes.
int train_in(Opening& opening, const ParsedArguments& arguments, ProcessGroup& group);

}  // namespace heed
