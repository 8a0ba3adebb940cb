// Pathfinder at any resolution: what lra-pathfinder and lra-pathx are made of.
#pragma once

#include <memory>

#include "train/task.h"

namespace heed {

/// The task whose images have `resolution` pixels a side unless an option says otherwise.
std::unique_ptr<Task> pathfinder_task(int64_t resolution);

}  // namespace heed
