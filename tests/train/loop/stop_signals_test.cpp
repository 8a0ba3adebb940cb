// Which signals set a flag, and that handlers are restored.
#include "heed/train/loop/stop_signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

using Handler = void (*)(int);

Handler handler_of(int number) {
  struct sigaction now = {};
  ::sigaction(number, nullptr, &now);
  return now.sa_handler;
}

/// A signal is treated like this while the object lives.
struct Treated {
  Treated(int number, Handler handler) : number_(number), before_(std::signal(number, handler)) {}
  ~Treated() { std::signal(number_, before_); }
  int number_;
  Handler before_;
};

/// The signal that ends a child which gets these, one after the other; 0: it ends by itself.
int ended_by(const std::vector<int>& numbers) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StopSignals signals;
    for (const int number : numbers) std::raise(number);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

constexpr int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};

}  // namespace

TEST_CASE("stop_signals: each sets the flag, and is what it was afterwards") {
  for (const int number : stopping) {
    CAPTURE(number);
    const Treated plain(number, SIG_DFL);
    {
      const StopSignals signals;
      CHECK(StopSignals::received() == 0);
      std::raise(number);
      CHECK(StopSignals::received() == number);
      const StopSignals inner;  // signals during a part of the work
      CHECK(StopSignals::received() == number);
    }
    CHECK(handler_of(number) == SIG_DFL);
  }
}

TEST_CASE("stop_signals: several may end in any order, as those of threads do") {
  const Treated plain(SIGTERM, SIG_DFL);
  auto first = std::make_unique<StopSignals>(), second = std::make_unique<StopSignals>();
  first.reset();
  std::raise(SIGTERM);
  CHECK(StopSignals::received() == SIGTERM);
  second.reset();
  CHECK(StopSignals::received() == 0);
  CHECK(handler_of(SIGTERM) == SIG_DFL);
}

TEST_CASE("stop_signals: what was ignored before stays ignored") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGUSR1}) {
    CAPTURE(number);
    const Treated ignored(number, SIG_IGN);
    {
      const StopSignals signals;
      std::raise(number);
      CHECK(StopSignals::received() == 0);
      CHECK(!SaveSignal::take());
    }
    CHECK(handler_of(number) == SIG_IGN);
  }
}

TEST_CASE("stop_signals: a second one of people ends the process, one that comes again by itself does not") {
  const Treated interrupt(SIGINT, SIG_DFL), terminate(SIGTERM, SIG_DFL);
  const Treated hangup(SIGHUP, SIG_DFL), cpu_time(SIGXCPU, SIG_DFL);
  CHECK(ended_by({SIGTERM}) == 0);
  CHECK(ended_by({SIGTERM, SIGTERM}) == SIGTERM);
  CHECK(ended_by({SIGTERM, SIGINT}) == SIGINT);
  CHECK(ended_by({SIGHUP, SIGHUP}) == 0);  // both the shell and the terminal send one
  CHECK(ended_by({SIGXCPU, SIGXCPU, SIGXCPU}) == 0);
  CHECK(ended_by({SIGTERM, SIGHUP}) == 0);
  CHECK(ended_by({SIGHUP, SIGTERM}) == 0);
  CHECK(ended_by({SIGHUP, SIGTERM, SIGTERM}) == SIGTERM);
}

TEST_CASE("stop_signals: SIGUSR1 asks for a checkpoint, once, and stops nothing") {
  const Treated plain(SIGUSR1, SIG_DFL);
  SaveSignal::take();
  const SaveSignal before_the_run;
  std::raise(SIGUSR1);
  {
    const StopSignals signals;
    CHECK(StopSignals::received() == 0);
    CHECK(SaveSignal::take());
    CHECK(!SaveSignal::take());
    std::raise(SIGUSR1);
  }
  CHECK(SaveSignal::take());
  CHECK(handler_of(SIGUSR1) != SIG_DFL);
}

TEST_CASE("stop_signals: a child that is about to become another program is ended by them") {
  const Treated terminate(SIGTERM, SIG_DFL), hangup(SIGHUP, SIG_IGN);
  const StopSignals signals;
  const pid_t child = ::fork();
  if (child == 0) {
    StopSignals::become_ordinary();
    ::_exit(handler_of(SIGTERM) == SIG_DFL && handler_of(SIGHUP) == SIG_IGN ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("stop signals: a request to save is taken once") {
  const StopSignals signals;
  ::raise(SIGUSR1);
  CHECK(StopSignals::received() == 0);
  CHECK(SaveSignal::take());
  CHECK(!SaveSignal::take());
}
