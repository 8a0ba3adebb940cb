// Agreement of the processes of a run on whether to save and stop after a step.
#pragma once

#include "heed/core/distributed/process_group.h"

namespace heed {

/// What a run is asked to do between two steps.
struct StopRequest {
  int signal = 0;            ///< number of the signal that asks to save and stop; 0: none
  bool out_of_time = false;  ///< whether the time limit is reached
  bool save = false;         ///< whether to save and continue
};

/// Combines the requests of all processes, so that all act alike: the signal of the first process that has
/// one, the time limit by the clock of the main process, and a save where any process is asked for one.
/// Collective: every process must call it.
StopRequest agree_on_stop(ProcessGroup& group, const StopRequest& own);

}  // namespace heed
