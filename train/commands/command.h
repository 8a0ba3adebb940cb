// The commands of the program, and what several of them share. What a program of one's own needs to add a
// command is in train/program.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/train/program.h"

namespace heed {

/// All commands, in the order of the help: those of commands.def, then those that register_command() has
/// added (command_registry.cpp).
std::span<const Command> commands();
/// Every command with its arguments and options: the page docs/reference/commands.md.
std::string commands_markdown();

/// What a command with `settings` takes besides them and its own options: --attention, --cross-attention and
/// --set.
std::vector<CommandOption> options_beside_settings(const Command& command);

/// --recipe, for commands that take a preset.
inline constexpr CommandOption recipe_option{
    "recipe", "NAME", "of a preset that has several: tiny, google, nystrom, skyformer or best"};

/// Settings that any config may be given, under their short and dotted names: --lr and --train.learning_rate.
struct Setting {
  std::string key;     ///< "train.learning_rate"
  std::string option;  ///< "learning-rate", or the dotted key where an earlier group has that name too
  std::string brief;   ///< a second, shorter option, "lr"; mostly empty
  std::string help;  ///< with the words or the range it takes, and in brackets its value where nobody says it
  bool word = false;  ///< takes one of several words
};
/// Every setting of every task. A key that not all tasks have, or that means something else in some, says
/// what it is in which, a line each.
std::vector<Setting> settings();
/// All settings with their options: the page docs/reference/settings.md.
std::string settings_markdown();

/// --beam-size and --length-penalty, of commands that decode with a run's model; checks the config
/// afterwards.
void apply_decoding(Config& config, const ParsedArguments& arguments);
/// `options` followed by the two that apply_decoding() reads.
std::vector<CommandOption> with_decoding(std::vector<CommandOption> options);

}  // namespace heed
