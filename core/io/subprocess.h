// Runs programs as subprocesses.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heed::io {

/// A program and how it is run.
struct SubprocessOptions {
  std::string program;                  ///< a path, or a name that is searched on the PATH
  std::vector<std::string> arguments;   ///< the first is the name by which the program is called
  std::vector<char*> environment = {};  ///< variables, ended by a null; empty: those of this process
  /// Called in the new process before the program starts; makes async-signal-safe calls only. Returns 0, or
  /// the errno for which the program is not started.
  std::function<int()> prepare = {};
  /// Called with the id of the process at least five times a second until its output ends. If it throws, the
  /// process is killed, and run_subprocess() throws that.
  std::function<void(pid_t)> poll = {};
};

/// How a subprocess ended.
struct SubprocessEnd {
  int start_error = 0;      ///< errno where the program was not started, else 0
  bool is_refused = false;  ///< whether SubprocessOptions::prepare gave start_error
  int code = 0;             ///< exit code; 0 where a signal ended it
  int signal = 0;           ///< the signal that ended it, else 0
  std::string output;       ///< last 8 KiB of its standard output and error, without line ends at the end
};

/// A program that runs beside this process, without input.
class Subprocess {
 public:
  /// Starts the program; `poll` of the options is not used. Fault::internal when no process can be made.
  explicit Subprocess(const SubprocessOptions& options);
  /// Kills the program unless end() was called.
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  /// The id of the process.
  pid_t id() const;
  /// Reads output for at most so many milliseconds; false at the end of the output, which programs that it
  /// started may hold open.
  bool read(int milliseconds);
  /// Waits for the end of the process. Call it once.
  SubprocessEnd end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Runs a program without input and waits for its end and for the end of its output. Fault::internal when no
/// process can be made.
SubprocessEnd run_subprocess(const SubprocessOptions& options);

}  // namespace heed::io
