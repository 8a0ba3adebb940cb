// Weights of another run, for a run that begins from them: heed train --from.
#pragma once

#include "heed/core/io/json.h"
#include "heed/nn/module.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// Puts `initial` (train/run/initial_weights.h) into a model that has taken no step, tells `progress` which
/// tensors are new, and returns what the manifest says of it. Fails naming the tensors that do not fit.
Json use_given_weights(const Checkpoint& initial, Module& model, Progress& progress);

}  // namespace heed
