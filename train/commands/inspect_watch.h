// Waits for the checkpoints of a run in training.
#pragma once

#include <cstdint>
#include <functional>

#include "heed/core/error.h"

namespace heed {

/// Calls `show` with the step of the newest checkpoint, then with that of each newer one as it appears, until
/// no process trains the run any more or `ended` returns true; looks every `seconds`. A checkpoint that is
/// removed while it is shown is left out. Returns the number of checkpoints shown. Fails where there is no
/// checkpoint and no process trains.
int64_t watch_checkpoints(const Path& run, const std::function<void(int64_t step)>& show,
                          const std::function<bool()>& ended, double seconds);

}  // namespace heed
