// Estimates of a run that has not begun, for heed show and heed train --dry-run.
#pragma once

#include "heed/train/config/config.h"
#include "heed/train/program.h"

namespace heed {

/// Prints parameters, operations, memory and time as comments of TOML, so that they can follow settings in a
/// file. Loads the task; where its data are missing, prints that instead.
void print_estimate(Config& config, const ParsedArguments& arguments);
/// Prints the estimate as one JSON object for programs. Fails where the data are not there.
void print_estimate_json(Config& config, const ParsedArguments& arguments);

}  // namespace heed
