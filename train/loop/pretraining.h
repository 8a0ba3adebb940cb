// The part of a run that comes before its own: the same reader learns to predict tokens of the same inputs.
// Amos, Berant and Gupta 2023, "Never train from scratch", arXiv 2310.02980.
#pragma once

#include "heed/core/io/json.h"
#include "heed/nn/module.h"
#include "heed/train/config/config.h"

namespace heed {

/// RUN/pretrain: a run of its own, with settings, metrics, checkpoints and scores.
Path pretraining_folder(const Path& run);

/// The settings of that run: those of the whole one, but data.predict, and length and rate of the training.
Config pretraining_config(Config& whole);

/// Whether it has come to its end and been scored.
bool pretrained(const Path& run);

/// Whether it has a checkpoint or a line of metrics, so that there is something to keep.
bool pretraining_begun(const Path& run);

/// Puts what its best checkpoint reads with into a fresh classifier. Fault::data where there is none, or it
/// belongs to another model.
void load_pretrained(Module& model, const Path& run);

/// What was done, for the manifest: objective, steps, which of them was taken, its scores, seconds.
Json pretraining_facts(const Config& whole, const Path& run);

}  // namespace heed
