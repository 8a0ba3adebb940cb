// Subprocesses: each has its own memory peak and cannot take the parent down.
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
  const size_t at = end.words.rfind("error: ");
  const std::string words = at == std::string::npos ? end.words : end.words.substr(at + 7);
  return words.empty() ? text("ended with code ", end.code) : words;
}

Fault fault_of(const ChildEnd& end) {
  const bool ours =
      end.code >= static_cast<int>(Fault::internal) && end.code <= static_cast<int>(Fault::device);
  return ours ? static_cast<Fault>(end.code) : Fault::internal;
}

ChildEnd run_child(const std::vector<std::string>& arguments, const std::function<void()>& meanwhile,
                   const std::function<bool()>& spent) {
  ChildEnd out;
  io::SubprocessOptions options{
      .program = "/proc/self/exe", .arguments = {"heed"}, .environment = environment_without_settings()};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.prepare = [parent = ::getpid()] {
    // A process group of its own: Ctrl-C reaches only the parent, which passes it on once. A second one would
    // end the subprocess at once.
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
    const int signal = StopSignals::received() != 0 ? StopSignals::received() : spent() ? SIGTERM : 0;
    if (signal == 0 || out.asked) return;
    ::kill(child, signal);
    out.asked = true;
  };
  const io::SubprocessEnd end = io::run_subprocess(options);
  out.code = end.signal != 0 ? 128 + end.signal : end.code;
  out.words = end.start_error != 0 ? text("error: ", std::strerror(end.start_error)) : end.output;
  return out;
}

}  // namespace heed
