// Trains a config in a folder that does not stay, for tests of whether tasks can be learned.
#pragma once

#include "heed/tests/scratch.h"
#include "heed/train/loop/trainer.h"

namespace heed {

/// The first test score after the training of a config whose task is loaded.
inline double score_after_training(Config config) {
  const Scratch scratch;
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run"});
  Progress progress;
  progress.quiet = true;
  Trainer trainer(config, folder, std::nullopt, progress);
  trainer.run();
  return config.task->test(trainer.model(), config.decode).scores.first();
}

}  // namespace heed
