// The commands of the program, and options that several share. A program of one's own adds commands by
// train/program.h.
#pragma once

#include <span>

#include "heed/train/program.h"

namespace heed {

/// All commands, in the order of the help: those of commands.def, then those that register_command() has
/// added (command_registry.cpp).
std::span<const Command> commands();

/// --recipe, for commands that take a preset.
inline constexpr CommandOption recipe_option{
    "recipe", "NAME", "recipe of a preset that has several: tiny, google, nystrom, skyformer or best"};
/// --quiet, for commands that train.
inline constexpr CommandOption quiet_option{"quiet", "", "print nothing while working"};

}  // namespace heed
