// The end of a session of training.
#pragma once

#include "heed/train/config/config.h"
#include "heed/train/loop/trainer.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// Scores the best checkpoint on the test data, and writes report.html, scores.json and the memory and time
/// of the training. `resumable`: the run that `heed resume` takes; null where there is none.
void show_result(Config& config, const RunFolder& folder, Trainer& trainer, const TrainResult& outcome,
                 Progress& progress, const Path* resumable);

}  // namespace heed
