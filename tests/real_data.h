// The real data that some tests read, where they are there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "tests/catch.h"
#include "tests/places.h"

namespace heed {

/// A file of the real data, or an empty path and a word that the test skips.
inline Path real_data(const std::string& name) {
  const char* named = std::getenv("HEED_DATA");
  const Path folder = named != nullptr ? Path(named) : Path(source_folder()) / ".." / "shared" / "data";
  const Path path = folder / name;
  if (std::filesystem::exists(path)) return path;
  WARN("skipped: " << path.string() << " is not there (set HEED_DATA to the folder of the real data)");
  return {};
}

}  // namespace heed
