// Temporary folders by mkdtemp, removed by descriptor.
#include "heed/core/io/temporary_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>  // mkdtemp
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/io/files.h"

namespace heed::io {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

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

/// The names in an open folder.
std::vector<std::string> names_in(int folder, const Path& path) {
  // A descriptor of its own: closedir() closes it.
  const int own = again([&] { return ::openat(folder, ".", folder_flags | O_CLOEXEC); });
  if (own < 0) io::refuse("list the folder", path, errno);
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::fdopendir(own), close);
  if (open == nullptr) {
    const int code = errno;
    ::close(own);
    io::refuse("list the folder", path, code);
  }
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(open.get()); errno = 0) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) io::refuse("list the folder", path, errno);
  return names;
}

/// Removes what is in an open folder. A folder that takes a file's place meanwhile is left, and a link is
/// removed itself.
void empty_folder(int folder, const Path& path) {
  for (const std::string& name : names_in(folder, path)) {
    const Path inner = path / name;
    if (again([&] { return ::unlinkat(folder, name.c_str(), 0); }) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) io::refuse("remove", inner, errno);
    const int open = again([&] { return ::openat(folder, name.c_str(), folder_flags | O_CLOEXEC); });
    if (open < 0) io::refuse("open the folder", inner, errno);
    const Descriptor entered(open, inner);
    empty_folder(entered.number(), inner);
    if (again([&] { return ::unlinkat(folder, name.c_str(), AT_REMOVEDIR); }) != 0)
      io::refuse("remove", inner, errno);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(std::string_view purpose) : TemporaryFolder(temporary_parent(), purpose) {}

TemporaryFolder::TemporaryFolder(const Path& parent, std::string_view purpose)
    : parent_(open_parent(parent)),
      path_(make_temporary(parent, purpose)),
      folder_(path_, folder_flags, "open the folder") {}

TemporaryFolder::~TemporaryFolder() {
  try {
    remove();
  } catch (const std::exception& error) {
    print_error(text("warning: ", error.what(), "\n"));
  }
}

void TemporaryFolder::remove() const {
  empty_folder(folder_.number(), path_);
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
