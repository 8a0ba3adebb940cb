// Checks that a folder holds certain files.
#pragma once

#include <string>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// The files of a data folder and where to get them.
struct ExpectedFiles {
  const char* what;                ///< name of the data: "MNIST"
  std::vector<std::string> names;  ///< names of the files; empty: any
  bool gzip = false;               ///< true if NAME.gz may replace each file
  const char* bring;               ///< advice: "Fetch them: heed data get mnist."
};

/// The path itself, or with .gz at its end where only that file is there.
Path plain_or_gzip(const Path& plain);

/// Fault::file that names what is missing, what is needed and how to get it, unless `folder` holds the files.
void expect_files(const Path& folder, const ExpectedFiles& wanted);

}  // namespace heed
