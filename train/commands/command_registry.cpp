// The commands that the program has: those of commands.def, and those that register_command() adds.
#include "heed/train/commands/command_declarations.h"

#include "heed/train/run/program_name.h"

namespace heed {
namespace {

std::vector<Command>& all_commands() {
  static std::vector<Command> all{
#define COMMAND(name) command::name(),
#include "heed/train/commands/commands.def"
#undef COMMAND
  };
  return all;
}

}  // namespace

std::span<const Command> commands() { return all_commands(); }

void register_command(const Command& command) {
  std::vector<std::string> taken{"help"};
  for (const Command& one : commands()) taken.emplace_back(one.name);
  check_registration("register_command", command.name, command.about, taken);
  if (command.run == nullptr)
    fail("register_command: '", command.name, "' has no function that runs it. Set Command::run.");
  if (command.positional == nullptr || command.positional_help == nullptr ||
      command.min_positional > command.max_positional) {
    fail("register_command: '", command.name,
         "' needs positional and positional_help (empty where it takes none), and min_positional must not be "
         "above "
         "max_positional.");
  }
  all_commands().push_back(command);
}

}  // namespace heed
