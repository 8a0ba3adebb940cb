// A file as a lock between processes.
#pragma once

#include <optional>
#include <string_view>

#include "heed/core/error.h"

namespace heed::io {

/// Holds a file locked while it lives. The lock is the operating system's (flock): it ends with the process,
/// however that ends, so the file that stays behind never blocks anyone.
class FileLock {
 public:
  /// Locks the file that has the name then, which is made when `create` says so; none when somebody else
  /// holds it. Fault::file when it cannot be opened, is no regular file or its file system knows no locks.
  static std::optional<FileLock> try_lock(const Path& path, bool create);

  FileLock(FileLock&& other) noexcept;             ///< the lock moves; `other` holds none
  FileLock& operator=(FileLock&& other) noexcept;  ///< gives up its own lock first
  ~FileLock();

  /// Makes this the content of the file, for people who ask who holds it. Says whether that worked: a note
  /// that cannot be written makes a lock less talkative, not less of a lock.
  bool note(std::string_view text);

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace heed::io
