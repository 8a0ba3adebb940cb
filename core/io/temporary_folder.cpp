// Temporary folders by mkdtemp, removed by descriptor.
#include "heed/core/io/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>  // mkdtemp
#include <unistd.h>

#include <cstring>
#include <string>

#include "heed/core/io/files.h"

namespace heed::io {
namespace {

[[noreturn]] void refuse_temporary(const Path& parent, int code) {
  fail(Fault::file, "cannot make a temporary folder in ", parent, ": ", std::strerror(code),
       ". Set TMPDIR to a folder that you may write to.");
}

Path temporary_parent() {
  const char* named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/tmp" : named;
}

Descriptor open_parent(const Path& parent) {
  const int file = again([&] { return ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (file < 0) refuse_temporary(parent, errno);
  return Descriptor(file, parent);
}

Path make_temporary(const Path& parent, std::string_view purpose) {
  std::string name = (parent / text("heed-", purpose, "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) refuse_temporary(parent, errno);
  return name;
}

/// Removes what is in an open folder, whatever has its path meanwhile. Links are removed themselves.
void empty_folder(const Descriptor& folder) {
  const Path entries = text("/proc/self/fd/", folder.number());
  for (const Path& name : list(entries)) {
    std::error_code code;
    std::filesystem::remove_all(entries / name, code);
    if (code) io::refuse("remove", folder.path() / name, code.value());
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(std::string_view purpose) : TemporaryFolder(temporary_parent(), purpose) {}

TemporaryFolder::TemporaryFolder(const Path& parent, std::string_view purpose)
    : parent_(open_parent(parent)),
      path_(make_temporary(parent, purpose)),
      folder_(path_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, "open the folder") {}

TemporaryFolder::~TemporaryFolder() {
  try {
    remove();
  } catch (const std::exception& error) {
    print_error(text("warning: ", error.what(), "\n"));
  }
}

void TemporaryFolder::remove() const {
  empty_folder(folder_);
  const struct stat own = status_of(folder_);
  const std::string name = path_.filename().string();
  struct stat named {};
  const bool is_present =
      again([&] { return ::fstatat(parent_.number(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW); }) == 0;
  if (!is_present || named.st_dev != own.st_dev || named.st_ino != own.st_ino) {
    fail(Fault::file, "the temporary folder ", path_,
         " was moved by another program: it is empty, and what has its name now was left as it is.");
  }
  if (again([&] { return ::unlinkat(parent_.number(), name.c_str(), AT_REMOVEDIR); }) != 0)
    io::refuse("remove", path_, errno);
}

}  // namespace heed::io
