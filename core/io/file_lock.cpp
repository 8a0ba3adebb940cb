// Locks files by flock().
#include "heed/core/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace heed::io {

std::optional<FileLock> FileLock::try_lock(const Path& path, bool create) {
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    FileLock lock(open_regular(path, create ? O_RDWR | O_CREAT : O_RDONLY, "open the lock"));
    if (again([&] { return ::flock(lock.file_.number(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      fail(Fault::file, "cannot lock ", path, ": ", std::strerror(errno),
           ". Does its file system know locks?");
    }
    // The process that held the lock may have removed the file between open and flock: a lock on a file
    // without a name locks nobody out.
    const struct stat locked = status_of(lock.file_);
    struct stat named {};
    if (find_status(path, named) && named.st_dev == locked.st_dev && named.st_ino == locked.st_ino)
      return lock;
  }
  fail(Fault::file, "cannot lock ", path, ": it is replaced again and again. See what else uses its folder.");
}

bool FileLock::note(std::string_view text) {
  if (file_.number() < 0 || ::ftruncate(file_.number(), 0) != 0) return false;
  for (off_t offset = 0; !text.empty();) {
    const ssize_t count = ::pwrite(file_.number(), text.data(), text.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    offset += count;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace heed::io
