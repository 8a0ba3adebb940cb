// A locale with decimal commas, as the host program of the library may have set one.
#pragma once

#include <clocale>
#include <cstdlib>
#include <string>

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

namespace heed {

/// Sets the Italian locale for the whole process while it lives: the system's, else one that localedef makes.
/// A test that finds it not made() ends there: the constructor has warned.
class CommaLocale {
 public:
  static constexpr const char* name = "it_IT.UTF-8";

  CommaLocale() {
    if (std::setlocale(LC_ALL, name) == nullptr) {
      const std::string made = "localedef -c -i it_IT -f UTF-8 " + (folder_ / name).string() + " >&2";
      if (std::system(made.c_str()) == 0) ::setenv("LOCPATH", folder_.path().c_str(), 1);
    }
    made_ = std::setlocale(LC_ALL, name) != nullptr && std::localeconv()->decimal_point[0] == ',';
    if (!made_) WARN("skipped: there is no locale " << name << ", and localedef makes none");
  }
  ~CommaLocale() {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  bool made() const { return made_; }

 private:
  Scratch folder_;  // holds the locale that was made; started programs find it by LOCPATH
  bool made_ = false;
};

}  // namespace heed
