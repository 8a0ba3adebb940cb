// This program, run again as a process of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace heed {

/// How a child ended.
struct ChildEnd {
  int code = 0;       ///< its exit code, or 128 + the signal that ended it
  std::string words;  ///< the last 8 KiB of what it said, on standard output and error
};

/// Why it failed: its last error, or all that it said, or its code.
std::string reason(const ChildEnd& end);
/// What its code says went wrong; internal where the code is none of ours, as when a signal ended it.
Fault fault_of(const ChildEnd& end);

/// Runs this program with the arguments and waits for it. It has nothing to read. `meanwhile` is called
/// about five times a second. While StopSignals live, a first signal is handed on to the child, which may
/// take its time to save, and so is SIGUSR1 each time. A child whose parent dies is asked to stop.
/// Fault::internal when no process can be made.
ChildEnd run_child(const std::vector<std::string>& arguments, const std::function<void()>& meanwhile);

}  // namespace heed
