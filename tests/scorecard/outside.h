// Programs looked at from outside: started with limits, watched, signalled, and waited for with what they
// used.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace heed::scorecard {

/// What to start, and under which limits.
struct Command {
  std::vector<std::string> words;  ///< the first is the program, looked for along PATH where it has no slash
  Path folder{};                   ///< where it starts; empty: here
  std::vector<std::pair<std::string, std::string>> environment{};  ///< set besides what we have; "" unsets
  double seconds = 120;        ///< it and its children are killed after so long; the result says so
  int64_t address_space = -1;  ///< RLIMIT_AS in bytes; -1: none
  int64_t file_size = -1;      ///< RLIMIT_FSIZE in bytes; -1: none
  std::string out{}, err{};    ///< files that standard output and error go to; empty: they are captured
  std::string input{};         ///< bytes for standard input
};

/// How it ended.
struct Ended {
  int code = -1;   ///< exit code; 128 + signal where a signal ended it, as a shell says
  int signal = 0;  ///< that ended it, or 0
  bool hung = false;
  std::string out, err;
  double seconds = 0;    ///< from start to end
  double cpu = 0;        ///< seconds of processor, user and system
  int64_t peak_kib = 0;  ///< largest resident set
  bool ok() const { return code == 0; }
  /// Code and last line of standard error, for a table.
  std::string said() const;
};

/// A running process, in a group of its own; it is killed when the object goes.
class Process {
 public:
  explicit Process(Command command);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t id() const { return id_; }
  bool running();  ///< false once it has ended; does not wait
  void signal(int number) const;
  void kill_all() const;   ///< SIGKILL to it and what it started
  double seconds() const;  ///< since it was started
  /// Waits for the end, at most until its limit; then kills it.
  Ended wait();
  /// Waits at most so long; true when it has ended by then.
  bool wait_for(double limit);

 private:
  bool collect(bool block);
  Command command_;
  pid_t id_ = -1;
  int out_ = -1, err_ = -1;  // files in memory
  double began_ = 0;
  bool ended_ = false;
  Ended result_;
};

/// Starts and waits.
Ended run(Command command);

/// Seconds of a steady clock.
double now();
void sleep_for(double seconds);
/// Whether a program of that name lies on the PATH.
bool have(const std::string& program);

/// A folder that goes with the object.
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
