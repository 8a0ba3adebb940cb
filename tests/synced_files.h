// Records which files the code under test syncs.
#pragma once

#include <string>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// The paths passed to fsync, and to syncfs as "all of PATH", since the last call, in order. The test
/// programs define these two functions: they record the path and call the system's.
std::vector<std::string> synced();

}  // namespace heed
