// The entries of tasks.def.
#pragma once

#include "train/task.h"

namespace heed::task {
#define TASK(name) TaskEntry name();
#include "train/tasks.def"
#undef TASK
}  // namespace heed::task
