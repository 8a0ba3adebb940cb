// The real data of some tests, where available.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "heed/core/error.h"
#include "heed/tests/catch.h"
#include "heed/tests/source_paths.h"

namespace heed {

/// A file of the real data; if it is missing, warns that the test is skipped and returns an empty path.
inline Path real_data(const std::string& name) {
  const char* named = std::getenv("HEED_DATA");
  const Path folder = named != nullptr ? Path(named) : Path(source_folder()) / ".." / "shared" / "data";
  const Path path = folder / name;
  if (std::filesystem::exists(path)) return path;
  WARN("skipped: " << path.string() << " is not there (set HEED_DATA to the folder of the real data)");
  return {};
}

}  // namespace heed
