// What a resumed run reads must be what it began with.
#pragma once

#include "heed/train/config/config.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// Stops a resume on other data than the run began with: it would not end with the same bits. The data are
/// loaded. A file may have another name, and a manifest that knows no hashes is believed.
void check_same_data(const Config& config, const RunFolder& folder);

}  // namespace heed
