// Locks by flock.
#include "core/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace heed::io {

std::optional<FileLock> FileLock::try_lock(const Path& path, bool create) {
  int file = -1;
  do {
    file = ::open(path.c_str(), (create ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EINTR);
  if (file < 0) fail(Fault::file, "cannot open the lock ", path, ": ", std::strerror(errno), ".");
  FileLock lock(file);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return std::nullopt;
    fail(Fault::file, "cannot lock ", path, ": ", std::strerror(errno), ". Does its file system know locks?");
  }
  return lock;
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
