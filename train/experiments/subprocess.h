// Runs this program as a subprocess, which has its own memory peak and cannot take the parent down.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/io/subprocess.h"

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

/// This program as a subprocess, which gets SIGTERM when the parent dies.
class ChildProcess {
 public:
  /// Starts it with these arguments, without input and without the variables of settings. Fault::internal
  /// when no process can be started.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  /// Waits at most so many milliseconds for output; false once the subprocess ends.
  bool read(int milliseconds) { return process_.read(milliseconds); }
  /// Sends it a signal.
  void send(int signal);
  /// Sends it a signal on which it saves and stops; does nothing when it was asked before.
  void ask_to_stop(int signal);
  /// Waits for its end. Call it once.
  ChildEnd end();

 private:
  io::Subprocess process_;
  bool stop_requested_ = false;
};

/// The signal on which subprocesses stop now: the stop signal that came while StopSignals lives, or SIGTERM
/// where `is_spent`; 0: none.
int stop_signal(bool is_spent);

/// Runs a ChildProcess to its end. Calls `meanwhile` about five times a second. While StopSignals lives,
/// passes on the first stop signal and every SIGUSR1; the subprocess saves before it stops. Sends SIGTERM
/// once is_spent() is true.
ChildEnd run_child(
    const std::vector<std::string>& arguments, const std::function<void()>& meanwhile,
    const std::function<bool()>& is_spent = [] { return false; });

}  // namespace heed
