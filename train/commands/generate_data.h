// heed data generate: embedded data as files.
#pragma once

#include "heed/train/commands/command.h"

namespace heed {

/// Writes the data that its second word names into the folder --out. Returns the exit code.
int generate_data(const ParsedArguments& arguments);

}  // namespace heed
