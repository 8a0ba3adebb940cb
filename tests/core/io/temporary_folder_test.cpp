// Temporary folders: fresh ones, removed without following links.
#include "heed/core/io/temporary_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/temporary_parent.h"

using namespace heed;

TEST_CASE("temporary folder: a new one each time, for its owner alone, and removed with all that is in it") {
  const Scratch scratch;
  const TemporaryParent parent(scratch.path());
  {
    const io::TemporaryFolder one("trial"), other("trial");
    CHECK(one.path() != other.path());
    CHECK(one.path().parent_path() == scratch.path());
    CHECK(one.path().filename().native().starts_with("heed-trial-"));
    struct stat found {};
    REQUIRE(::stat(one.path().c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0700);
    io::make_directories(one.path() / "run/ckpt");
    io::write(one.path() / "run/ckpt/weights", "numbers");
    io::write(other.path() / ".hidden", "too");
  }
  CHECK(io::list(scratch.path()).empty());
}

TEST_CASE("temporary folder: links in it go, and what they lead to stays") {
  const Scratch scratch, outside;
  outside.file("precious", "years");
  const TemporaryParent parent(scratch.path());
  {
    const io::TemporaryFolder folder("trial");
    REQUIRE(::symlink(outside.path().c_str(), (folder.path() / "folder").c_str()) == 0);
    REQUIRE(::symlink((outside / "precious").c_str(), (folder.path() / "file").c_str()) == 0);
    REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  }
  CHECK(io::list(scratch.path()).empty());
  CHECK(io::read(outside / "precious") == "years");
}

TEST_CASE("temporary folder: what somebody puts in its place stays") {
  const Scratch scratch, outside;
  outside.file("precious", "years");
  const TemporaryParent parent(scratch.path());
  const bool is_link = GENERATE(true, false);
  Path moved, place;
  {
    const io::TemporaryFolder folder("trial");
    place = folder.path();
    moved = scratch / "moved";
    io::write(place / "work", "of the folder");
    io::rename_directory(place, moved);
    if (is_link) {
      REQUIRE(::symlink(outside.path().c_str(), place.c_str()) == 0);
    } else {
      io::make_directory(place);
      io::write(place / "thesis", "of somebody else");
    }
  }  // warns
  CHECK(io::list(moved).empty());
  CHECK(io::is_there(place));
  if (!is_link) CHECK(io::read(place / "thesis") == "of somebody else");
  CHECK(io::read(outside / "precious") == "years");
}

TEST_CASE("temporary folder: where none can be made, the error names the place and TMPDIR") {
  const Scratch scratch;
  const auto refused = [](const Path& place, const std::string& reason) {
    const TemporaryParent parent(place);
    CHECK(fault_of([] { io::TemporaryFolder("trial"); }) == Fault::file);
    CHECK_THROWS_WITH(io::TemporaryFolder("trial"),
                      containing(place.string()) && containing(reason) && containing("Set TMPDIR to"));
  };
  refused(scratch / "missing", "No such file or directory");
  refused(scratch.file("file", "no folder"), "Not a directory");
  refused("/proc", "");
}
