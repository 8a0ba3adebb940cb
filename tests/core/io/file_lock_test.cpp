// File locks: one holder, a note for people, errors that name the file.
#include "heed/core/io/file_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

TEST_CASE("file lock: one holder, until it goes") {
  Scratch scratch;
  const Path path = scratch / "lock";
  CHECK(fault_of([&] { io::FileLock::try_lock(path, false); }) == Fault::file);
  auto lock = io::FileLock::try_lock(path, true);
  REQUIRE(lock);
  CHECK(lock->note("a long note"));
  CHECK(lock->note("held"));
  CHECK(io::read(path) == "held");
  CHECK_FALSE(io::FileLock::try_lock(path, true));
  io::FileLock moved = std::move(*lock);
  CHECK_FALSE(lock->note("by nobody"));
  lock.reset();
  CHECK_FALSE(io::FileLock::try_lock(path, false));
  { const io::FileLock last = std::move(moved); }
  const auto again = io::FileLock::try_lock(path, false);
  REQUIRE(again);
  CHECK(io::read(path) == "held");
  CHECK_THROWS_WITH(io::FileLock::try_lock(scratch / "no/lock", true),
                    containing("no/lock") && containing("No such file"));
}

TEST_CASE("file lock: neither a link nor a pipe is opened") {
  Scratch scratch;
  const Path victim = scratch.file("victim", "keep"), link = scratch / "link",
             dangling = scratch / "dangling", pipe = scratch / "pipe";
  REQUIRE(::symlink(victim.c_str(), link.c_str()) == 0);
  REQUIRE(::symlink("nowhere", dangling.c_str()) == 0);
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const bool create : {false, true}) {
    CHECK_THROWS_WITH(io::FileLock::try_lock(link, create), containing(text(link, " is a link to ", victim)));
    CHECK_THROWS_WITH(io::FileLock::try_lock(dangling, create), containing("is a link to nowhere"));
    CHECK_THROWS_WITH(io::FileLock::try_lock(pipe, create), containing("is a pipe"));
  }
  CHECK(io::read(victim) == "keep");
  CHECK_FALSE(io::is_there(scratch / "nowhere"));
}
