// Renames a run, and updates the files that name it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// A run under its new name.
struct RenamedRun {
  Path path;                  ///< new path of its folder
  std::vector<Path> updated;  ///< runs that began from its weights, whose manifests have the new name
};

/// Renames the folder of a run in one step, then the run in its report and in the manifests of the runs in
/// the same folder that began from its weights. Where one of these cannot be written, all keep their names.
/// Fault::busy where one of the runs is in use; a usage error where the name is taken or illegal, or where
/// `heed compare` or `heed reproduce` finds the run by its name. `command` goes into the notes of the locks.
RenamedRun rename_run(const Path& run, const std::string& name, std::string_view command);

}  // namespace heed
