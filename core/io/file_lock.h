// A file as a lock between processes.
#pragma once

#include <optional>
#include <string_view>

#include "heed/core/io/file_descriptor.h"

namespace heed::io {

/// Holds a file locked while it lives. The operating system ends the lock (flock) with the process, however
/// that ends, so a file that stays behind never blocks anyone.
class FileLock {
 public:
  /// Locks the file, which is created where `create` is true; returns nothing where another process holds
  /// it. Fault::file when it cannot be opened, is no regular file or its file system has no locks.
  static std::optional<FileLock> try_lock(const Path& path, bool create);

  /// Replaces the content of the file by `text`, which tells people who holds the lock. Returns whether that
  /// worked; the lock holds either way.
  bool note(std::string_view text);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace heed::io
