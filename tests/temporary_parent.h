// Where temporary folders are made, for a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "heed/core/error.h"

namespace heed {

/// TMPDIR is this path until it ends.
class TemporaryParent {
 public:
  explicit TemporaryParent(const Path& path) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", path.c_str(), 1);
  }
  TemporaryParent(const TemporaryParent&) = delete;
  TemporaryParent& operator=(const TemporaryParent&) = delete;
  ~TemporaryParent() {
    if (before_)
      ::setenv("TMPDIR", before_->c_str(), 1);
    else
      ::unsetenv("TMPDIR");
  }

 private:
  std::optional<std::string> before_;
};

}  // namespace heed
