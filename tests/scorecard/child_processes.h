// Runs programs with limits: starts, watches and signals them, and reports their resource usage.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"

namespace heed::scorecard {

/// A program to start, and its limits.
struct Command {
  std::vector<std::string> words;  ///< the first is the program, searched on the PATH if it has no slash
  Path folder{};                   ///< working directory; empty: this one
  std::vector<std::pair<std::string, std::string>> environment{};  ///< variables to set; "" unsets one
  double seconds = 120;        ///< time limit: then it and its children are killed
  int64_t address_space = -1;  ///< RLIMIT_AS in bytes; -1: none
  int64_t file_size = -1;      ///< RLIMIT_FSIZE in bytes; -1: none
  std::string out{}, err{};    ///< files for standard output and error; empty: capture them
  std::string input{};         ///< standard input
};

/// The result of a program.
struct Ended {
  int code = -1;   ///< exit code; 128 + signal if a signal ended it, as in a shell
  int signal = 0;  ///< the signal that ended it, or 0
  bool hung = false;
  std::string out, err;
  double seconds = 0;    ///< wall clock
  double cpu = 0;        ///< seconds of CPU time, user and system
  int64_t peak_kib = 0;  ///< largest resident set
  bool ok() const { return code == 0; }
  /// Exit code and last line of standard error, for a table.
  std::string said() const;
};

/// A running process in its own process group; the destructor kills it.
class Process {
 public:
  explicit Process(Command command);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t id() const { return id_; }
  bool running();  ///< does not wait
  void signal(int number) const;
  void kill_all() const;   ///< SIGKILL to it and its children
  double seconds() const;  ///< since its start
  /// Waits for its end or its time limit, and then kills it.
  Ended wait();
  /// Waits at most `limit` seconds; true if it has ended.
  bool wait_for(double limit);

 private:
  bool collect(bool block);
  Command command_;
  pid_t id_ = -1;
  int out_ = -1, err_ = -1;  // memfd files
  double began_ = 0;
  bool ended_ = false;
  Ended result_;
};

/// Starts a program and waits for it.
Ended run(Command command);

/// Seconds of a monotonic clock.
double now();
void sleep_for(double seconds);
/// True if a program of this name is on the PATH.
bool have(const std::string& program);

/// A temporary folder, removed by the destructor.
class Room {
 public:
  Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room();
  const Path& path() const { return path_; }
  Path operator/(const std::string& name) const { return path_ / name; }

 private:
  Path path_;
};

}  // namespace heed::scorecard
