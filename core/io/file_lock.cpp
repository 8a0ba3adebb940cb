// Locks by flock.
#include "heed/core/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "heed/core/io/file_descriptor.h"

namespace heed::io {

std::optional<FileLock> FileLock::try_lock(const Path& path, bool create) {
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    FileLock lock(open_regular(path, create ? O_RDWR | O_CREAT : O_RDONLY, "open the lock").release());
    if (again([&] { return ::flock(lock.file_, LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      fail(Fault::file, "cannot lock ", path, ": ", std::strerror(errno),
           ". Does its file system know locks?");
    }
    // Who removes a locked file holds its lock meanwhile: what was opened before may be locked only now, and
    // is then a file without a name that locks nothing.
    const struct stat locked = look(lock.file_, path);
    struct stat named {};
    if (look_at(path, named) && named.st_dev == locked.st_dev && named.st_ino == locked.st_ino) return lock;
  }
  fail(Fault::file, "cannot lock ", path, ": it is replaced again and again. See what else uses its folder.");
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

bool FileLock::note(std::string_view text) {
  if (file_ < 0 || ::ftruncate(file_, 0) != 0) return false;
  for (off_t at = 0; !text.empty();) {
    const ssize_t count = ::pwrite(file_, text.data(), text.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace heed::io
