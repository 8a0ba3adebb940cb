// Subprocesses by fork and exec.
#include "heed/core/io/subprocess.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "heed/core/io/file_descriptor.h"

namespace heed::io {
namespace {

constexpr size_t max_output = 8192;

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    fail(Fault::internal, "subprocess: no pipe: ", std::strerror(errno), ".");
  return {Descriptor(ends[0], "a pipe"), Descriptor(ends[1], "a pipe")};
}

/// Why a program was not started.
struct StartError {
  int code = 0;
  bool is_refused = false;  // by SubprocessOptions::prepare
};

/// Replaces the new process by the program; writes a StartError to `start_error` where that fails.
[[noreturn]] void execute(const SubprocessOptions& options, char* const* arguments, int output,
                          int start_error) {
  int input[2];  // standard input of the program: an empty pipe
  StartError error;
  error.code = ::pipe2(input, O_CLOEXEC) != 0 || ::dup2(input[0], STDIN_FILENO) < 0 ||
                       ::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0
                   ? errno
                   : 0;
  if (error.code == 0 && options.prepare) {
    error.code = options.prepare();
    error.is_refused = error.code != 0;
  }
  if (error.code == 0) {
    ::execvpe(options.program.c_str(), arguments,
              options.environment.empty() ? environ : options.environment.data());
    error.code = errno;
  }
  if (::write(start_error, &error, sizeof error) != sizeof error) ::_exit(126);
  ::_exit(127);
}

}  // namespace

struct Subprocess::State {
  pid_t id = 0;
  Descriptor output;
  SubprocessEnd end{};
  bool is_over = false;  // whether the process was waited for

  int wait_for_end() {
    int status = 0;
    again([&] { return ::waitpid(id, &status, 0); });
    is_over = true;
    return status;
  }
};

Subprocess::Subprocess(const SubprocessOptions& options) : state_(std::make_unique<State>()) {
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Pipe output = make_pipe(), start_error = make_pipe();
  State& state = *state_;
  state.id = ::fork();
  if (state.id == 0)
    execute(options, arguments.data(), output.write_end.number(), start_error.write_end.number());
  if (state.id < 0) {
    state.is_over = true;
    fail(Fault::internal, "subprocess: no process can be made: ", std::strerror(errno), ".");
  }
  output.write_end.close();
  state.output = std::move(output.read_end);
  start_error.write_end.close();
  StartError error;
  again([&] { return ::read(start_error.read_end.number(), &error, sizeof error); });
  state.end.start_error = error.code;
  state.end.is_refused = error.is_refused;
}

Subprocess::~Subprocess() {
  if (state_->is_over) return;
  ::kill(state_->id, SIGKILL);
  state_->wait_for_end();
}

pid_t Subprocess::id() const { return state_->id; }

bool Subprocess::read(int milliseconds) {
  const int pipe = state_->output.number();
  std::string& output = state_->end.output;
  pollfd awaited{pipe, POLLIN, 0};
  if (::poll(&awaited, 1, milliseconds) <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(pipe, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  output.append(buffer.data(), static_cast<size_t>(count));
  if (output.size() > max_output) output.erase(0, output.size() - max_output);
  return count > 0;
}

SubprocessEnd Subprocess::end() {
  const int status = state_->wait_for_end();
  SubprocessEnd end = std::move(state_->end);
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.output.erase(end.output.find_last_not_of("\r\n") + 1);
  return end;
}

SubprocessEnd run_subprocess(const SubprocessOptions& options) {
  Subprocess process(options);
  while (process.read(200)) {
    if (options.poll) options.poll(process.id());
  }
  return process.end();
}

}  // namespace heed::io
