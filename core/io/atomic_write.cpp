// Atomic writes by a temporary file, fsync and rename.
#include "heed/core/io/atomic_write.h"

#include <stdio.h>  // rename
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"

namespace heed::io {

void write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), size_t{1} << 30);
    const ssize_t count = again([&] { return ::write(file.number(), bytes.data(), piece); });
    if (count < 0) refuse("write", file.path(), errno);
    if (count == 0) refuse("write", file.path(), ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void sync(const Descriptor& file) {
  // Pipes, terminals and some devices cannot be synced and need not be.
  if (again([&] { return ::fsync(file.number()); }) != 0 && errno != EINVAL && errno != EROFS)
    refuse("sync", file.path(), errno);
}

Path folder_of(const Path& path) {
  const Path parent = path.parent_path();
  return parent.empty() ? Path(".") : parent;
}

void create_synced(const Path& path, std::string_view bytes, std::optional<mode_t> mode) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create");
  if (mode && again([&] { return ::fchmod(file.number(), *mode); }) != 0)
    refuse("set the permissions of", path, errno);
  write_all(file, bytes);
  sync(file);
  file.close();
}

void replace_file(const Path& path, std::string_view bytes) {
  const Path folder = folder_of(path);
  const Path temporary = folder / text(".", path.filename().string(), ".", random_name(), ".tmp");
  struct stat old {};
  std::optional<mode_t> mode;  // permissions of the replaced file
  if (find_status(path, old) && S_ISREG(old.st_mode)) mode = old.st_mode & 0777;
  try {
    create_synced(temporary, bytes, mode);
    if (again([&] { return ::rename(temporary.c_str(), path.c_str()); }) != 0)
      refuse("put into place", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(folder);
}

void write_own(const Path& path, std::string_view bytes) {
  check_regular(path);
  replace_file(path, bytes);
}

void write_new(const Path& path, std::string_view bytes) { create_synced(path, bytes); }

}  // namespace heed::io
