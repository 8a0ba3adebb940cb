// Runs this program as a subprocess.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// How a subprocess ended.
struct ChildEnd {
  int code = 0;        ///< its exit code, or 128 + the signal that ended it
  bool asked = false;  ///< whether it was asked to stop
  std::string words;   ///< the last 8 KiB of its standard output and error
};

/// Why it failed: its last error, else its output, else its code.
std::string reason(const ChildEnd& end);
/// The fault of its exit code; internal when the code is not one of heed's, such as after a signal.
Fault fault_of(const ChildEnd& end);

/// Runs this program with these arguments, without input and without the variables of settings, and waits for
/// it. Calls `meanwhile` about five times a second. While StopSignals lives, passes on the first stop signal,
/// then lets the subprocess save, and every SIGUSR1. Does the same with SIGTERM once `spent` is true. When
/// the parent dies, the subprocess is asked to stop. Fault::internal when no process can be started.
ChildEnd run_child(
    const std::vector<std::string>& arguments, const std::function<void()>& meanwhile,
    const std::function<bool()>& spent = [] { return false; });

}  // namespace heed
