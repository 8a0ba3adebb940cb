// The lock of a run: one holder, its name in errors, released when its process ends.
#include "heed/train/run/run_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

TEST_CASE("lock: a second holder is refused and told who has it") {
  Scratch scratch;
  CHECK_FALSE(run_holder(scratch.path()));
  {
    RunLock lock(scratch.path(), "heed train translate --name a");
    CHECK(fault_of([&] { RunLock(scratch.path(), "other"); }) == Fault::busy);
    CHECK_THROWS_WITH(RunLock(scratch.path(), "other"),
                      containing(text("is in use by pid ", int64_t{::getpid()}, " since ")) &&
                          containing("(started by: heed train translate --name a)"));
    CHECK(run_holder(scratch.path())->find("heed train translate") != std::string::npos);
    RunLock moved = std::move(lock);
    CHECK(fault_of([&] { RunLock(scratch.path(), "other"); }) == Fault::busy);
  }
  CHECK_FALSE(run_holder(scratch.path()));
  CHECK_NOTHROW(RunLock(scratch.path(), "again"));
}

TEST_CASE("lock: a stale file never blocks, whatever is in it") {
  Scratch scratch;
  for (const char* stale :
       {"", "{\"pid\": 1, \"since\": \"2000-01-01 00:00\", \"command\": \"old\"}", "\xff garbage"}) {
    io::write(scratch / "lock", stale);
    CHECK_FALSE(run_holder(scratch.path()));
    CHECK_NOTHROW(RunLock(scratch.path(), "new"));
  }
}

TEST_CASE("lock: a killed process lets go") {
  Scratch scratch;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    RunLock lock(scratch.path(), "the child");
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK_THROWS_WITH(RunLock(scratch.path(), "parent"),
                    containing(text("pid ", int64_t{child})) && containing("the child"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_NOTHROW(RunLock(scratch.path(), "parent"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("lock: a folder that is not there is an error of the file system") {
  Scratch scratch;
  CHECK(fault_of([&] { RunLock(scratch / "missing", "x"); }) == Fault::file);
}
