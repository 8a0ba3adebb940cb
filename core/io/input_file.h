// Reads a file that a user names, which may be a pipe: --file <(command).
#pragma once

#include <string>

#include "heed/core/error.h"

namespace heed::io {

/// All of a file, as io::read() gives it; a pipe or a device is read to its end too, up to io::stream_cap
/// bytes unless `cap` says otherwise, and may be waited for. Files that are found in a folder, such as those
/// of a run, are read by io::read(), since nobody who puts a pipe there should hold the program up.
std::string read_input(const Path& path, int64_t cap = 0);

}  // namespace heed::io
