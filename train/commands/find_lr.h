// heed train --find-lr and its options.
#pragma once

#include "heed/train/commands/command.h"

namespace heed {

/// Tests a range of learning rates (train/loop/learning_rate_finder.h), prints the curve with the rate it
/// suggests, and writes find_lr.csv and find_lr.svg into --out (default: the present folder). Returns the
/// exit code.
int find_lr(Config& config, const ParsedArguments& arguments);

/// --find-lr, --find-lr-from, --find-lr-to and --find-lr-steps.
std::vector<CommandOption> find_lr_options();

}  // namespace heed
