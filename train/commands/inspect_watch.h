// Waits for the checkpoints of a run that is being trained.
#pragma once

#include <cstdint>
#include <functional>

#include "heed/core/error.h"

namespace heed {

/// Calls `show` with the step of the newest checkpoint, then with that of each newer one as it appears, until
/// nobody trains the run any more or `ended` says so; looks every `seconds`. A checkpoint that is pruned
/// while it is shown is left out. Returns how many were shown. Fails where there is no checkpoint and nobody
/// trains.
int64_t watch_checkpoints(const Path& run, const std::function<void(int64_t step)>& show,
                          const std::function<bool()>& ended, double seconds);

}  // namespace heed
