// Turns parsed arguments into words of a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/train/program.h"

namespace heed {

/// The given ones of --threads, --device and --memory with their values, to be passed to other processes.
std::vector<std::string> machine_options(const ParsedArguments& arguments);

/// Quotes a word for a shell, where that is necessary.
std::string shell_word(std::string_view word);

}  // namespace heed
