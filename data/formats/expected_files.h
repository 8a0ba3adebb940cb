// A folder that must hold certain files: what is said where it does not.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"

namespace heed {

/// What a folder of data must hold, and where it comes from.
struct ExpectedFiles {
  const char* what;                ///< "MNIST"
  std::vector<std::string> names;  ///< of files; none: any will do
  bool gzip = false;               ///< whether each may be there as NAME.gz instead
  const char* bring;               ///< what to do: "Fetch them: heed data get mnist."
};

/// Fault::file, naming what is missing, what is needed and how to get it, unless `folder` is a folder that
/// holds the files.
void expect_files(const Path& folder, const ExpectedFiles& wanted);

}  // namespace heed
