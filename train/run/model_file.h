// Files of one model that other programs wrote, recognised by their first bytes.
#pragma once

#include "heed/core/error.h"
#include "heed/train/run/imported_model.h"

namespace heed {

/// Reads a file of any kind in the table of model_file.cpp; its name does not matter. Fault::data that lists
/// the kinds where the first bytes are of none.
ImportedModel read_model_file(const Path& path);

}  // namespace heed
