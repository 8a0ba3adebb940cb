// Parsed arguments as words of a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/train/program.h"

namespace heed {

/// --threads, --device and --memory with their values, as far as they are given, for processes that train
/// runs.
std::vector<std::string> machine_options(const ParsedArguments& arguments);

/// A word between single quotes of a shell, or as it is where a shell takes it so.
std::string shell_word(std::string_view word);

}  // namespace heed
