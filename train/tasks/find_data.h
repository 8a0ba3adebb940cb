// Finds the files and folders that data.path names.
#pragma once

#include <string>

#include "heed/core/error.h"

namespace heed {

/// Finds data given by --data: the path itself, the path inside HEED_DATA, or the folder data-NAME that `heed
/// data get NAME` makes. The error names all places searched.
Path find_data(const std::string& path);

}  // namespace heed
