// One process at a time in a run folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/file_lock.h"

namespace heed {

/// Holds RUN/lock while it lives. The lock is the operating system's (flock): it ends with the process
/// however that ends, so the file that stays behind never blocks anyone. What is in the file is for people.
class RunLock {
 public:
  /// Fault::busy naming process, start and command when another process (or another RunLock) holds it.
  RunLock(const Path& run, std::string_view command);

 private:
  std::optional<io::FileLock> lock_;
};

/// Who holds the run's lock, as in "pid 4711 since 14:02 (started by: heed train translate)"; none when
/// nobody does.
std::optional<std::string> run_holder(const Path& run);

}  // namespace heed
