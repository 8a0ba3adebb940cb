// Watches what the code under test forces to the disk.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"

namespace heed {

/// The paths that were given to fsync, and to syncfs as "all of PATH", since the last look, in order. The
/// test programs have these two calls of their own, which note the path and then do what the system does.
std::vector<std::string> synced();

}  // namespace heed
