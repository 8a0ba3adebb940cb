// Signals on which a run finishes its step and saves, and then stops or continues.
#pragma once

#include <csignal>

namespace heed {

/// Handles a signal while it lives, and restores the previous handler at its end. An ignored signal stays
/// ignored, as nohup and shells expect.
class HandledSignal {
 public:
  /// Installs the handler, which must be async-signal-safe.
  HandledSignal(int number, void (*handler)(int));
  ~HandledSignal();
  HandledSignal(const HandledSignal&) = delete;
  HandledSignal& operator=(const HandledSignal&) = delete;

 private:
  int number_;
  struct sigaction before_ = {};
};

/// While it lives, SIGUSR1 asks for a checkpoint instead of ending the process.
class SaveSignal {
 public:
  SaveSignal();
  static bool take();  ///< whether the signal has come since the last call

 private:
  HandledSignal handled_;
};

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGXCPU set a flag instead of ending the process, and SIGUSR1
/// is a SaveSignal. A second SIGINT or SIGTERM ends the process at once; the others do not, since the system
/// repeats them. Several objects may live at a time, in any order and in any threads: the first installs the
/// handlers, the last restores the previous ones. A signal that has come stays received() until the last
/// ends.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  static int received();          ///< number of the signal that asked to stop, or 0
  static bool any_alive();        ///< whether an object lives in any thread: then received() tells who asks
  static void become_ordinary();  ///< restores the default actions; called by a child process before exec
};

}  // namespace heed
