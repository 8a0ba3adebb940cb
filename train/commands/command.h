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
/// --jobs, for commands that train several runs: parse_jobs() reads its value.
inline constexpr CommandOption jobs_option{
    "jobs", "N|auto",
    "trainings at once, each a process with its share of the threads; fewer where memory does not suffice; "
    "auto: as many as threads and memory allow (default: 1)"};

}  // namespace heed
