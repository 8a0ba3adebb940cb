// The entries of commands.def.
#pragma once

#include "heed/train/commands/command.h"

namespace heed::command {
#define COMMAND(name) Command name();
#include "heed/train/commands/commands.def"
#undef COMMAND
}  // namespace heed::command
