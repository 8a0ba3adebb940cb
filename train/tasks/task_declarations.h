// Declares the functions that give the tasks of tasks.def: TaskEntry task::lm() and so on.
#pragma once

#include "heed/train/tasks/registry.h"

namespace heed::task {
/// A line of tasks.def: declares the function that describes this task.
#define TASK(name) TaskEntry name();
#include "heed/train/tasks/tasks.def"
#undef TASK
}  // namespace heed::task
