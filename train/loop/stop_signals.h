// Signals that a run answers in order: it finishes its step, saves, and stops or goes on.
#pragma once

#include <csignal>

namespace heed {

/// A signal handled while this lives, and as before after it. A signal that is ignored stays ignored, as
/// nohup and shells mean it.
class HandledSignal {
 public:
  /// Installs the handler, which must be safe to call from a signal.
  HandledSignal(int number, void (*handler)(int));
  ~HandledSignal();
  HandledSignal(const HandledSignal&) = delete;
  HandledSignal& operator=(const HandledSignal&) = delete;

 private:
  int number_;
  struct sigaction before_ = {};
};

/// SIGUSR1 asks for a checkpoint instead of ending the process.
class SaveSignal {
 public:
  SaveSignal();
  static bool take();  ///< whether it has come since it was asked last

 private:
  HandledSignal handled_;
};

/// SIGINT, SIGTERM, SIGHUP and SIGXCPU set a flag instead of ending the process, and SIGUSR1 is a SaveSignal.
/// A second SIGINT or SIGTERM ends it at once; the others come again by themselves, so they do not. Several
/// may live at a time, in any order and in any threads: the first handles the signals, the last restores
/// them.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  static int received();          ///< the signal's number, or 0
  static void become_ordinary();  ///< those handled end the process again: for a child before its exec
};

}  // namespace heed
