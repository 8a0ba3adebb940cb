// Another name for a run, and for what refers to it by its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// A run under its new name.
struct RenamedRun {
  Path path;                  ///< its folder now
  std::vector<Path> updated;  ///< runs beside it that began from its weights: their manifests name it anew
};

/// Renames a run in one step, then its report and the manifests of runs beside it that began from its
/// weights; where one of these cannot be written, all keep their names. Fault::busy where it or one of those
/// is in use; a usage error where the name is taken or illegal, or where `heed compare` or `heed reproduce`
/// finds the run by its name. `command`: for the lock's note.
RenamedRun rename_run(const Path& run, const std::string& name, std::string_view command);

}  // namespace heed
