// A folder of its own for a test that writes files.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"

namespace heed {

/// A fresh folder under the system's temporary one, or another; it goes away with the object.
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
  /// Writes a file into the folder and says where it is.
  Path file(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;  // io::write syncs, which thousands of files feel
    return path_ / name;
  }

 private:
  Path path_;
};

/// The kind of the Error that a call throws; a call that throws none fails the test.
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
