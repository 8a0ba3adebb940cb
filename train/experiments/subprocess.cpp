// Starts this program as a subprocess, passes signals on, and reads why it failed.
#include "heed/train/experiments/subprocess.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "heed/core/io/subprocess.h"
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

ChildEnd run_child(const std::vector<std::string>& arguments, const std::function<void()>& meanwhile,
                   const std::function<bool()>& is_spent) {
  ChildEnd out;
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
  options.poll = [&](pid_t child) {
    meanwhile();
    if (SaveSignal::take()) ::kill(child, SIGUSR1);
    const int signal = StopSignals::received() != 0 ? StopSignals::received() : is_spent() ? SIGTERM : 0;
    if (signal == 0 || out.stop_requested) return;
    ::kill(child, signal);
    out.stop_requested = true;
  };
  const io::SubprocessEnd end = io::run_subprocess(options);
  out.code = end.signal != 0 ? 128 + end.signal : end.code;
  out.output = end.start_error != 0 ? text("error: ", std::strerror(end.start_error)) : end.output;
  return out;
}

}  // namespace heed
