// Pre-training before a run: the encoder learns to predict tokens of the same inputs.
// Amos, Berant and Gupta 2023, "Never train from scratch", arXiv 2310.02980.
#pragma once

#include "heed/core/io/json.h"
#include "heed/nn/module.h"
#include "heed/train/config/config.h"

namespace heed {

/// RUN/pretrain: the run folder of the pre-training, with settings, metrics, checkpoints and scores.
Path pretraining_folder(const Path& run);

/// The settings of the pre-training of `run`: those of the run, except data.predict and the number of steps,
/// the learning rate and the maps of training.
Config pretraining_config(Config& run);

/// Whether the pre-training of a run is finished and scored.
bool pretrained(const Path& run);

/// Whether the pre-training of a run has a checkpoint or a line of metrics.
bool pretraining_begun(const Path& run);

/// Loads the encoder of the best pre-training checkpoint into a fresh classifier. Fault::data where there is
/// none, or where it belongs to another model.
void load_pretrained(Module& model, const Path& run);

/// The pre-training as JSON, for the manifest: objective, number of steps, and once it is finished the step
/// of the best weights, their scores and hash, and its seconds.
Json pretraining_metadata(const Config& config, const Path& run);

}  // namespace heed
