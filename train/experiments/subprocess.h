// Runs this program as a subprocess, which has its own memory peak and cannot take the parent down.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// How a subprocess ended.
struct ChildEnd {
  int code = 0;                 ///< exit code, or 128 + the signal that ended it
  bool stop_requested = false;  ///< whether it was asked to stop
  std::string output;           ///< the last 8 KiB of its standard output and error
};

/// Why a subprocess failed: its last error, else its output, else its exit code.
std::string reason(const ChildEnd& end);
/// The fault of an exit code; internal for a code that is not one of heed's, such as after a signal.
Fault fault_of(const ChildEnd& end);

/// Runs this program with these arguments, without input and without the variables of settings, and waits for
/// it. Calls `meanwhile` about five times a second. While StopSignals lives, passes on the first stop signal
/// and every SIGUSR1; the subprocess saves before it stops. Sends SIGTERM once is_spent() is true, and when
/// the parent dies. Fault::internal when no process can be started.
ChildEnd run_child(
    const std::vector<std::string>& arguments, const std::function<void()>& meanwhile,
    const std::function<bool()>& is_spent = [] { return false; });

}  // namespace heed
