// What show and train --dry-run tell about a run that has not been made.
#pragma once

#include "heed/train/commands/command.h"
#include "heed/train/config/config.h"

namespace heed {

/// Prints parameters, operations, memory and time as comments, so that the settings above stay a file that
/// can be trained. Loads the task; where its data are not there, says so instead.
void print_estimate(Config& config, const ParsedArguments& arguments);
/// The same as one JSON object for programs. Fails where the data are not there.
void print_estimate_json(Config& config, const ParsedArguments& arguments);

}  // namespace heed
