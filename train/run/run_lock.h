// The lock of a run's folder, by which one process at a time writes there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heed/core/error.h"
#include "heed/core/io/file_lock.h"

namespace heed {

/// Locks RUN/lock while it lives. The lock is one of the operating system (flock), which ends with the
/// process however that ends: the file alone never blocks a run. Its text is a note for people.
class RunLock {
 public:
  /// Locks the run, and notes `command` in the file. Fault::busy when another process, or another RunLock,
  /// holds the lock; the error names that process, its start and its command.
  RunLock(const Path& run, std::string_view command);

 private:
  std::optional<io::FileLock> lock_;
};

/// Describes the holder of the run's lock, such as "pid 4711 since 14:02 (started by: heed train translate)";
/// none when the lock is free.
std::optional<std::string> run_holder(const Path& run);

}  // namespace heed
