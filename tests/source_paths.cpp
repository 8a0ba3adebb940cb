// Paths defined by the build, in one file: all other objects are the same in every checkout.
#include "heed/tests/source_paths.h"

#include <cstdlib>

namespace heed {
namespace {

/// `path`, or the file of its name in the folder HEED_TEST_PROGRAMS where that is set.
std::string program_at(const std::string& path) {
  const char* folder = std::getenv("HEED_TEST_PROGRAMS");
  return folder == nullptr ? path : folder + path.substr(path.rfind('/'));
}

}  // namespace

std::string source_folder() {
  const char* folder = std::getenv("HEED_TEST_SOURCES");
  return folder == nullptr ? HEED_SOURCE_DIR : folder;
}

std::string program() { return program_at(HEED_PROGRAM); }

std::string program_with_faults() { return program_at(HEED_PROGRAM_WITH_FAULTS); }

std::string own_program() { return program_at(HEED_OWN_PROGRAM); }

std::string fit_program() { return program_at(HEED_FIT_PROGRAM); }

std::string locale_program() { return program_at(HEED_LOCALE_PROGRAM); }

}  // namespace heed
