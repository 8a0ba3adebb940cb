// What a function prints to standard error.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "heed/core/io/files.h"
#include "heed/tests/scratch.h"

namespace heed {

/// While it lives, standard error goes to a file.
class CapturedErrors {
 public:
  CapturedErrors() : before_(::dup(STDERR_FILENO)) {
    const int file = ::open((scratch_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;
  ~CapturedErrors() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  /// What was printed so far.
  std::string text() const { return io::read(scratch_ / "err"); }

 private:
  Scratch scratch_;
  int before_;
};

/// What f() prints to standard error.
template <class F>
std::string errors_of(F&& f) {
  const CapturedErrors captured;
  f();
  return captured.text();
}

}  // namespace heed
