// The lock of a run folder: one process at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heed/core/error.h"
#include "heed/core/io/file_lock.h"

namespace heed {

/// Holds RUN/lock while it lives. It is a lock of the operating system (flock), which ends with the process
/// however that ends, so a file left behind never blocks a run. The file's text is for people.
class RunLock {
 public:
  /// Fault::busy that names process, start and command when another process (or another RunLock) holds it.
  RunLock(const Path& run, std::string_view command);

 private:
  std::optional<io::FileLock> lock_;
};

/// The holder of the run's lock, such as "pid 4711 since 14:02 (started by: heed train translate)"; none when
/// it is free.
std::optional<std::string> run_holder(const Path& run);

}  // namespace heed
