// Sets the width of the terminal.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <string>

namespace heed {

/// The variable COLUMNS for the time of a test.
class Columns {
 public:
  explicit Columns(const char* value) {
    if (const char* was = std::getenv("COLUMNS")) before_ = was;
    ::setenv("COLUMNS", value, 1);
  }
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;
  ~Columns() {
    if (before_.empty())
      ::unsetenv("COLUMNS");
    else
      ::setenv("COLUMNS", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

}  // namespace heed
