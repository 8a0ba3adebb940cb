// Processes by fork, exec and wait4, and temporary folders.
#include "heed/tests/scorecard/child_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace heed::scorecard {
namespace {

/// A file without a name that holds what a child writes.
int memory_file(const std::string& bytes = "") {
  const int file = ::memfd_create("scorecard", MFD_CLOEXEC);
  if (file < 0) fail(Fault::internal, "memfd_create: ", std::strerror(errno));
  if (!bytes.empty() && ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    fail(Fault::internal, "memfd: ", std::strerror(errno));
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

std::string content(int file) {
  struct stat found {};
  if (file < 0 || ::fstat(file, &found) != 0) return "";
  std::string bytes(static_cast<size_t>(found.st_size), '\0');
  const ssize_t got = ::pread(file, bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

int target(const std::string& path) {
  if (path.empty()) return memory_file();
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail(Fault::internal, "open ", path, ": ", std::strerror(errno));
  return file;
}

void limit(int what, int64_t bytes) {
  if (bytes < 0) return;
  const rlimit maximum{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  ::setrlimit(static_cast<__rlimit_resource>(what), &maximum);
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void sleep_for(double seconds) {
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

std::string Ended::said() const {
  std::string_view text = err;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const size_t line = text.rfind('\n');
  if (line != std::string_view::npos) text.remove_prefix(line + 1);
  return heed::text(hung ? "hung; " : "", "code ", code, text.empty() ? "" : ": ", text.substr(0, 160));
}

Process::Process(Command command) : command_(std::move(command)) {
  std::vector<char*> words;
  for (std::string& word : command_.words) words.push_back(word.data());
  words.push_back(nullptr);
  const int in = memory_file(command_.input);
  out_ = target(command_.out);
  err_ = target(command_.err);
  const pid_t parent = ::getpid();
  began_ = now();
  id_ = ::fork();
  if (id_ < 0) fail(Fault::internal, "fork: ", std::strerror(errno));
  if (id_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGUSR1, SIGPIPE}) ::signal(number, SIG_DFL);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    for (const auto& [name, value] : command_.environment) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
    if (!command_.folder.empty() && ::chdir(command_.folder.c_str()) != 0) ::_exit(127);
    limit(RLIMIT_AS, command_.address_space);
    limit(RLIMIT_FSIZE, command_.file_size);
    ::execvp(words[0], words.data());
    const std::string why = text("cannot start ", words[0], ": ", std::strerror(errno), "\n");
    if (::write(STDERR_FILENO, why.data(), why.size()) < 0) ::_exit(126);
    ::_exit(127);
  }
  ::setpgid(id_, id_);  // whoever comes first
  ::close(in);
}

Process::Process(Process&& other) noexcept
    : command_(std::move(other.command_)),
      id_(std::exchange(other.id_, -1)),
      out_(std::exchange(other.out_, -1)),
      err_(std::exchange(other.err_, -1)),
      began_(other.began_),
      ended_(other.ended_),
      result_(std::move(other.result_)) {}

Process::~Process() {
  if (id_ > 0 && !ended_) {
    kill_all();
    collect(true);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

bool Process::collect(bool block) {
  if (ended_) return true;
  int status = 0;
  rusage used{};
  pid_t got = 0;
  do {
    got = ::wait4(id_, &status, block ? 0 : WNOHANG, &used);
  } while (got < 0 && errno == EINTR);
  if (got != id_) return false;
  ended_ = true;
  result_.seconds = now() - began_;
  result_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  result_.cpu = seconds(used.ru_utime) + seconds(used.ru_stime);
  result_.peak_kib = used.ru_maxrss;
  if (command_.out.empty()) result_.out = content(out_);
  if (command_.err.empty()) result_.err = content(err_);
  return true;
}

bool Process::running() { return !collect(false); }

void Process::signal(int number) const { ::kill(id_, number); }

void Process::kill_all() const { ::kill(-id_, SIGKILL); }

double Process::seconds() const { return now() - began_; }

bool Process::wait_for(double limit) {
  const double until = now() + limit;
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, id_, 0));
  while (!collect(false) && now() < until) {
    if (handle < 0) {
      sleep_for(0.001);
      continue;
    }
    pollfd waiting{handle, POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(1000 * (until - now())) + 1);
  }
  if (handle >= 0) ::close(handle);
  return ended_;
}

Ended Process::wait() {
  if (!wait_for(command_.seconds - seconds())) {
    result_.hung = true;
    kill_all();
    collect(true);
  }
  return result_;
}

Ended run(Command command) { return Process(std::move(command)).wait(); }

bool have(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (::access((Path(folder) / program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Room::Room() {
  std::string name = (std::filesystem::temp_directory_path() / "heed-scorecard-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail(Fault::file, "cannot create a folder like ", name);
  path_ = name;
}

Room::~Room() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace heed::scorecard
