// Subprocesses: output, exit codes, signals, and programs that cannot be started.
#include "heed/core/io/subprocess.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>

#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

io::SubprocessEnd shell(const std::string& command) {
  return io::run_subprocess({.program = "sh", .arguments = {"sh", "-c", command}});
}

}  // namespace

TEST_CASE("subprocess: output of both streams and the exit code come back") {
  const io::SubprocessEnd end = shell("echo out; echo err >&2; cat; exit 7");  // cat: there is no input
  CHECK(end.start_error == 0);
  CHECK(end.code == 7);
  CHECK(end.signal == 0);
  CHECK(end.output == "out\nerr");
  const io::SubprocessEnd much = shell("yes abc | head -c 100000; echo end");
  CHECK(much.output.size() <= 8192);
  CHECK(much.output.ends_with("end"));
}

TEST_CASE("subprocess: a signal that ends it comes back") {
  const io::SubprocessEnd end = shell("kill -9 $$");
  CHECK(end.signal == SIGKILL);
  CHECK(end.code == 0);
}

TEST_CASE("subprocess: a program that cannot be started is told from one that fails") {
  CHECK(io::run_subprocess({.program = "heed-no-such-program", .arguments = {"x"}}).start_error == ENOENT);
  CHECK(shell("exit 127").start_error == 0);
  const auto refused =
      io::run_subprocess({.program = "sh", .arguments = {"sh"}, .prepare = [] { return EPERM; }});
  CHECK(refused.start_error == EPERM);
  CHECK(refused.is_refused);
  CHECK_FALSE(io::run_subprocess({.program = "heed-no-such-program", .arguments = {"x"}}).is_refused);
}

TEST_CASE("subprocess: the caller is polled and can end it, and variables can be others") {
  int polls = 0;
  const auto ended =
      io::run_subprocess({.program = "sleep", .arguments = {"sleep", "100"}, .poll = [&](pid_t id) {
                            if (++polls == 2) ::kill(id, SIGTERM);
                          }});
  CHECK(polls >= 2);
  CHECK(ended.signal == SIGTERM);
  char variable[] = "HEED_TEST_VARIABLE=5";
  const auto printed = io::run_subprocess({.program = "/bin/sh",
                                           .arguments = {"sh", "-c", "echo $HEED_TEST_VARIABLE"},
                                           .environment = {variable, nullptr}});
  CHECK(printed.output == "5");
}

TEST_CASE("subprocess: a caller that throws while it polls leaves no process") {
  pid_t started = 0;
  const auto run = [&] {
    io::run_subprocess({.program = "sleep", .arguments = {"sleep", "100"}, .poll = [&](pid_t id) {
                          started = id;
                          throw Error(Fault::busy, "enough");
                        }});
  };
  CHECK_THROWS_AS(run(), Error);
  REQUIRE(started > 0);
  CHECK(::kill(started, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("subprocess: two run beside each other, and one that is given up leaves no process") {
  const auto started = [](const std::string& command) {
    return std::make_unique<io::Subprocess>(
        io::SubprocessOptions{.program = "sh", .arguments = {"sh", "-c", command}});
  };
  const auto first = started("echo one"), second = started("echo two; exit 3");
  auto sleeping = started("exec sleep 100");
  while (second->read(100)) continue;
  while (first->read(100)) continue;
  const io::SubprocessEnd one = first->end(), two = second->end();
  CHECK(one.output == "one");
  CHECK(one.code == 0);
  CHECK(two.output == "two");
  CHECK(two.code == 3);
  const pid_t id = sleeping->id();
  CHECK(sleeping->read(1));
  sleeping.reset();
  CHECK(::kill(id, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("subprocess: it holds no pipe of its start") {
  int64_t inherited = 0;
  for (int number = 3; number < 1024; ++number) {
    const int flags = ::fcntl(number, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++inherited;
  }
  const io::SubprocessEnd end = shell("ls /proc/self/fd | wc -l");  // ls has the folder open besides
  CHECK(end.output == std::to_string(4 + inherited));
}
