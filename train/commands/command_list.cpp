// The list of commands.
#include "heed/train/commands/command_list.h"

#include "heed/train/run/registration.h"

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
  if (command.words == nullptr || command.words_help == nullptr || command.least > command.most) {
    fail("register_command: '", command.name,
         "' needs words and words_help (empty where it takes none), and least must not be above most.");
  }
  all_commands().push_back(command);
}

}  // namespace heed
