// Checks that a folder holds certain files.
#pragma once

#include <string>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// The files of a data folder and where to get them.
struct ExpectedFiles {
  const char* what;                ///< "MNIST"
  std::vector<std::string> names;  ///< names of the files; empty: any
  bool gzip = false;               ///< true if NAME.gz may replace each
  const char* bring;               ///< advice: "Fetch them: heed data get mnist."
};

/// The file, or the one of its name with .gz where only that is there.
Path plain_or_gzip(const Path& plain);

/// Fault::file that names what is missing, what is needed and how to get it, unless `folder` holds the files.
void expect_files(const Path& folder, const ExpectedFiles& wanted);

}  // namespace heed
