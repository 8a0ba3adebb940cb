// Subprocesses: each has its own memory peak and cannot take the parent down.
#include "heed/train/experiments/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "heed/train/config/environment_variables.h"
#include "heed/train/loop/stop_signals.h"

namespace heed {
namespace {

constexpr size_t max_words = 8192;

[[noreturn]] void become(std::vector<char*>& arguments, std::vector<char*>& variables, int words,
                         pid_t parent) {
  // Its own process group: Ctrl-C reaches only the parent, which passes it on once. A second one would end
  // the subprocess at once.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(128 + SIGTERM);
  StopSignals::become_ordinary();
  sigset_t save;  // SIGUSR1 is blocked until the subprocess handles it
  ::sigemptyset(&save);
  ::sigaddset(&save, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &save, nullptr);
  int nothing[2];  // empty standard input: end of file at once
  if (::pipe2(nothing, O_CLOEXEC) != 0) ::_exit(127);
  ::dup2(nothing[0], STDIN_FILENO);
  ::dup2(words, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  ::execve("/proc/self/exe", arguments.data(), variables.data());
  ::_exit(127);
}

/// Reads output for at most 200 ms; false at the end of the output.
bool listen(int words, std::string& said) {
  pollfd one{words, POLLIN, 0};
  if (::poll(&one, 1, 200) <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(words, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  said.append(buffer.data(), static_cast<size_t>(count));
  if (said.size() > max_words) said.erase(0, said.size() - max_words);
  return count > 0;
}

}  // namespace

std::string reason(const ChildEnd& end) {
  const size_t at = end.words.rfind("error: ");
  std::string words = at == std::string::npos ? end.words : end.words.substr(at + 7);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return words.empty() ? text("ended with code ", end.code) : words;
}

Fault fault_of(const ChildEnd& end) {
  const bool ours =
      end.code >= static_cast<int>(Fault::internal) && end.code <= static_cast<int>(Fault::device);
  return ours ? static_cast<Fault>(end.code) : Fault::internal;
}

ChildEnd run_child(const std::vector<std::string>& arguments, const std::function<void()>& meanwhile,
                   const std::function<bool()>& spent) {
  std::vector<std::string> all{"heed"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& one : all) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(Fault::internal, "child: no pipe: ", std::strerror(errno), ".");
  std::vector<char*> variables = environment_without_settings();
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(pointers, variables, ends[1], parent);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    fail(Fault::internal, "child: no process can be made: ", std::strerror(errno), ".");
  }
  ChildEnd out;
  while (listen(ends[0], out.words)) {
    meanwhile();
    if (SaveSignal::take()) ::kill(child, SIGUSR1);
    const int signal = StopSignals::received() != 0 ? StopSignals::received() : spent() ? SIGTERM : 0;
    if (signal != 0 && !out.asked) {
      ::kill(child, signal);
      out.asked = true;
    }
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

}  // namespace heed
