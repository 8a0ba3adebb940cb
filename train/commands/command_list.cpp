// The list of commands.
#include "heed/train/commands/command_list.h"

#include <array>

namespace heed {

std::span<const Command> commands() {
  static const std::array all{
#define COMMAND(name) command::name(),
#include "heed/train/commands/commands.def"
#undef COMMAND
  };
  return all;
}

}  // namespace heed
