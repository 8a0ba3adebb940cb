// Inputs and output folders of heed heads, heed ablate and heed maps.
#pragma once

#include <string>
#include <vector>

#include "heed/train/commands/command.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/inspect/map_source.h"

namespace heed {

/// True when a run's data are the embedded phrasebook in words, whose word alignment is known.
bool is_phrasebook(Config& config);

/// The folder of --out, which is made with those above it, or the folder `name` in the run, which is no link.
Path output_folder(const ParsedArguments& arguments, const LoadedRun& run, const std::string& name);

/// Inputs out of a text file, gzip or not: one a line, at most `count` (0: all), without blank ones. Of a
/// line it takes what is before the first character of `until`, if there is one. Fault::data when there are
/// none, and for what is not UTF-8.
MappedLines lines_of_file(const Path& path, const std::string& option, int64_t count,
                          std::string_view until = "");

}  // namespace heed
