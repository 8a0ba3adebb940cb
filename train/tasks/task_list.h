// Declares the functions of the tasks in tasks.def.
#pragma once

#include "heed/train/tasks/task.h"

namespace heed::task {
#define TASK(name) TaskEntry name();
#include "heed/train/tasks.def"
#undef TASK
}  // namespace heed::task
