// Declares the functions of the tasks in tasks.def.
#pragma once

#include "heed/train/tasks/task.h"

namespace heed::task {
/// A line of tasks.def: declares the function that describes this task.
#define TASK(name) TaskEntry name();
#include "heed/train/tasks.def"
#undef TASK
}  // namespace heed::task
