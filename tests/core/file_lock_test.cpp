// A file as a lock: one holder, a note for people, errors that name the file.
#include "core/file_lock.h"

#include "core/io.h"
#include "tests/catch.h"
#include "tests/scratch.h"

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
