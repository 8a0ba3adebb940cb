// Starts this program as a subprocess, passes signals on, and reads why it failed.
#include "heed/train/experiments/subprocess.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "heed/train/config/environment_variables.h"
#include "heed/train/loop/stop_signals.h"

namespace heed {

std::string reason(const ChildEnd& end) {
  constexpr std::string_view mark = "error: ";
  const size_t error = end.output.rfind(mark);
  const std::string words = error == end.output.npos ? end.output : end.output.substr(error + mark.size());
  return words.empty() ? text("ended with code ", end.code) : words;
}

Fault fault_of(const ChildEnd& end) {
  const bool is_fault =
      end.code >= static_cast<int>(Fault::internal) && end.code <= static_cast<int>(Fault::device);
  return is_fault ? static_cast<Fault>(end.code) : Fault::internal;
}

namespace {

io::SubprocessOptions child_options(const std::vector<std::string>& arguments) {
  io::SubprocessOptions options{
      .program = "/proc/self/exe", .arguments = {"heed"}, .environment = environment_without_settings()};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.prepare = [parent = ::getpid()] {
    // In a process group of its own Ctrl-C reaches only the parent, which passes it on once: a second signal
    // would end the subprocess before it has saved.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(128 + SIGTERM);
    StopSignals::become_ordinary();
    sigset_t save;  // SIGUSR1 is blocked until the subprocess handles it
    ::sigemptyset(&save);
    ::sigaddset(&save, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &save, nullptr);
    return 0;
  };
  return options;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) : process_(child_options(arguments)) {}

void ChildProcess::send(int signal) { ::kill(process_.id(), signal); }

void ChildProcess::ask_to_stop(int signal) {
  if (!stop_requested_) send(signal);
  stop_requested_ = true;
}

ChildEnd ChildProcess::end() {
  const io::SubprocessEnd end = process_.end();
  return {.code = end.signal != 0 ? 128 + end.signal : end.code,
          .stop_requested = stop_requested_,
          .output = end.start_error != 0 ? text("error: ", std::strerror(end.start_error)) : end.output};
}

int stop_signal(bool is_spent) {
  if (const int signal = StopSignals::received(); signal != 0) return signal;
  return is_spent ? SIGTERM : 0;
}

ChildEnd run_child(const std::vector<std::string>& arguments, const std::function<void()>& meanwhile,
                   const std::function<bool()>& is_spent) {
  ChildProcess child(arguments);
  while (child.read(200)) {
    meanwhile();
    if (SaveSignal::take()) child.send(SIGUSR1);
    if (const int signal = stop_signal(is_spent()); signal != 0) child.ask_to_stop(signal);
  }
  return child.end();
}

}  // namespace heed
