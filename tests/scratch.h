// A temporary folder for a test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "heed/core/error.h"

namespace heed {

/// A new folder in the system's temporary one, or another; the destructor removes it.
class Scratch {
 public:
  explicit Scratch(const Path& within = std::filesystem::temp_directory_path()) {
    std::string name = (within / "heed-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail(Fault::file, "cannot create a folder like ", name);
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const Path& path() const { return path_; }
  Path operator/(const std::string& name) const { return path_ / name; }
  /// Writes a file into the folder and returns its path.
  Path file(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;  // without the sync of io::write, for speed
    return path_ / name;
  }

 private:
  Path path_;
};

/// The fault of the Error that a call throws; throwing none fails the test.
template <class Call>
Fault fault_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.fault();
  }
  throw std::logic_error("no Error was thrown");
}

}  // namespace heed
