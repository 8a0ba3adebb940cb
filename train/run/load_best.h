// Loads the best weights of a run into a model of one's own.
#pragma once

#include <cstdint>

#include "heed/nn/module.h"

namespace heed {

/// Loads the weights of the best checkpoint into `model`, or of the last one where none is marked as the
/// best, and returns its step. `folder` is that of fit() (FitOptions::folder), of save_checkpoint() or of a
/// run of the program. Fails, and changes nothing, where there is no such folder or it is none of these
/// (Fault::file), where it has no checkpoint yet or a damaged one, and where the tensors of the model differ
/// in name, type or shape (Fault::data), naming the first that does.
int64_t load_best(Module& model, const Path& folder);

}  // namespace heed
