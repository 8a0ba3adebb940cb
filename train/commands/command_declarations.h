// Declares the functions that give the commands of commands.def: Command command::train() and so on.
#pragma once

#include "heed/train/commands/command.h"

namespace heed::command {
#define COMMAND(name) Command name();
#include "heed/train/commands/commands.def"
#undef COMMAND
}  // namespace heed::command
