// Pathfinder at any resolution: the base of lra-pathfinder and lra-pathx.
#pragma once

#include <memory>

#include "heed/train/tasks/task.h"

namespace heed {

/// The task with images of `resolution` pixels a side by default.
std::unique_ptr<Task> pathfinder_task(int64_t resolution);

}  // namespace heed
