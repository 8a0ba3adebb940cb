// Reading, atomic writing, appending, folders.
#include "heed/core/io/files.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "heed/core/io/no_follow_files.h"
#include "heed/tests/catch.h"
#include "heed/tests/deflate.h"
#include "heed/tests/scratch.h"
#include "heed/tests/synced_files.h"

using namespace heed;

TEST_CASE("io: what is written is read back") {
  Scratch scratch;
  const Path path = scratch / "file";
  std::string bytes(300000, 'x');
  bytes[5] = '\0';
  bytes[299999] = '\n';
  io::write(path, bytes);
  CHECK(io::read(path) == bytes);
  CHECK(io::size(path) == 300000);
  io::write(path, "short");
  CHECK(io::read(path) == "short");
  io::write(path, "");
  CHECK(io::read(path).empty());
  CHECK(io::list(scratch.path()) == std::vector<Path>{"file"});
}

TEST_CASE("io: errors name the path and the reason") {
  Scratch scratch;
  const Path missing = scratch / "missing";
  CHECK(fault_of([&] { io::read(missing); }) == Fault::file);
  CHECK_THROWS_WITH(io::read(missing), containing(missing.string()) && containing("No such file"));
  CHECK_THROWS_WITH(io::read(scratch.path()), containing("it is a folder"));
  CHECK_THROWS_WITH(io::write(scratch.path(), "x"), containing("it is a folder"));
  CHECK_THROWS_WITH(io::write(scratch / "no/such/file", "x"), containing("No such file"));
  CHECK_THROWS_WITH(io::Appender(scratch / "no/such"), containing("No such file"));
  CHECK_THROWS_WITH(io::size(missing), containing("No such file"));
}

TEST_CASE("io: a read has a cap when asked for one") {
  Scratch scratch;
  io::write(scratch / "file", std::string(1000, 'x'));
  CHECK(io::read(scratch / "file", 1000).size() == 1000);
  CHECK(fault_of([&] { io::read(scratch / "file", 999); }) == Fault::data);
  CHECK(fault_of([&] { io::read_text(scratch / "file", 999); }) == Fault::data);
}

TEST_CASE("io: text is inflated when it is gzip") {
  Scratch scratch;
  io::write(scratch / "plain", "two\nlines\n");
  io::write(scratch / "packed", deflate("two\nlines\n"));
  CHECK(io::read_text(scratch / "plain") == "two\nlines\n");
  CHECK(io::read_text(scratch / "packed") == "two\nlines\n");
  io::write(scratch / "bomb", deflate(std::string(10'000'000, '\0')));
  CHECK(io::size(scratch / "bomb") < 20000);
  CHECK(fault_of([&] { io::read_text(scratch / "bomb", 1'000'000); }) == Fault::data);
}

TEST_CASE("io: a full device is an error that says so") {
  const Path full = "/dev/full";
  if (!io::exists(full)) {
    WARN("there is no /dev/full here: skipped");
    return;
  }
  CHECK(fault_of([&] { io::write(full, "x"); }) == Fault::file);
  CHECK_THROWS_WITH(io::write(full, "x"), containing("No space left"));
  CHECK_THROWS_WITH(io::Appender(full), containing("/dev/full is a device"));
}

TEST_CASE("io: a write that fails leaves the old file and nothing else") {
  Scratch scratch;
  io::write(scratch / "file", "old");
  // A limit on the size of files stands for a disk that is full.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit low = before;
  low.rlim_cur = 10000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  const bool thrown = [&] {
    try {
      io::write(scratch / "file", std::string(20000, 'x'));
    } catch (const Error& error) {
      return error.fault() == Fault::file;
    }
    return false;
  }();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(thrown);
  CHECK(io::read(scratch / "file") == "old");
  CHECK(io::list(scratch.path()) == std::vector<Path>{"file"});
}

TEST_CASE("io: lines are appended to what is there") {
  Scratch scratch;
  const Path path = scratch / "lines";
  {
    io::Appender appender(path);
    appender.line("one");
    io::Appender moved = std::move(appender);
    moved.line("two");
    moved.sync();
  }
  io::Appender(path).line("three");
  CHECK(io::read(path) == "one\ntwo\nthree\n");
}

TEST_CASE("io: what is written is forced to the disk, and so is the name of a file that is new") {
  using Paths = std::vector<std::string>;
  Scratch scratch;
  const std::string folder = scratch.path().string(), path = folder + "/file";
  const std::string_view bytes = "abc";
  synced();
  io::write(path, bytes);
  const Paths whole = synced();
  REQUIRE(whole.size() == 2);
  CHECK_THAT(whole[0], containing(folder + "/.file."));  // the temporary that becomes the file
  CHECK(whole[1] == folder);
  io::Appender(path).line("known");
  CHECK(synced().empty());
  io::Appender made(folder + "/lines");
  made.line("one");
  CHECK(synced() == Paths{folder});
  made.sync();
  CHECK(synced() == Paths{folder + "/lines"});
  io::write_plain(path, std::span(&bytes, 1));
  CHECK(synced() == Paths{path});
  io::write_plain(path, std::span(&bytes, 1), false);
  CHECK(synced().empty());
  io::sync_all(folder);
  CHECK(synced() == Paths{"all of " + folder});
  io::truncate(path, 1);
  CHECK(synced() == Paths{path});
  io::make_directories(folder + "/below");
  io::rename_directory(folder + "/below", folder + "/beside");
  CHECK(synced() == Paths{folder, folder});
  CHECK_THROWS_WITH(io::sync_all(folder + "/none"), containing(folder + "/none"));
}

TEST_CASE("io: there is nothing whose name is too long to be one") {
  CHECK_FALSE(io::exists(std::string(5000, 'a')));
  CHECK_FALSE(io::is_directory(std::string(5000, 'a')));
  CHECK_FALSE(io::is_there(std::string(300, 'a')));
}

TEST_CASE("io: a file is cut at the first line that is past") {
  Scratch scratch;
  const Path path = scratch / "lines";
  CHECK(io::truncate_after(path, [](std::string_view) { return true; }) == 0);
  CHECK_FALSE(io::exists(path));
  io::write(path, "1\n2\n3\n4\ntorn");
  CHECK(io::truncate_after(path, [](std::string_view) { return false; }) == 4);
  CHECK(io::read(path) == "1\n2\n3\n4\n");
  CHECK(io::truncate_after(path, [](std::string_view line) { return line == "3"; }) == 2);
  CHECK(io::read(path) == "1\n2\n");
  io::truncate(path, 2);
  CHECK(io::read(path) == "1\n");
}

TEST_CASE("io: folders are made, claimed, listed, renamed, replaced and removed") {
  Scratch scratch;
  const Path deep = scratch / "a/b/c";
  io::make_directories(deep);
  io::make_directories(deep);
  CHECK(io::is_directory(deep));
  io::write(deep / "file", "x");
  CHECK_THROWS_WITH(io::make_directories(deep / "file"), containing("a file of that name"));

  CHECK(io::claim_directory(scratch / "mine"));
  CHECK_FALSE(io::claim_directory(scratch / "mine"));
  CHECK(io::list(scratch.path()) == std::vector<Path>{"a", "mine"});
  CHECK(io::list(scratch / "missing").empty());

  io::write(scratch / "mine/file", "mine");
  CHECK(fault_of([&] { io::rename_directory(deep, scratch / "mine"); }) == Fault::file);
  CHECK(io::read(scratch / "mine/file") == "mine");
  io::replace_directory(deep, scratch / "mine");
  CHECK(io::read(scratch / "mine/file") == "x");
  CHECK_FALSE(io::exists(deep));
  io::rename_directory(scratch / "mine", scratch / "yours");
  CHECK(io::list(scratch.path()) == std::vector<Path>{"a", "yours"});
  io::remove_all(scratch / "yours");
  io::remove_all(scratch / "yours");
  CHECK_FALSE(io::exists(scratch / "yours"));
}

TEST_CASE("io: a folder is filled by one after the other") {
  Scratch scratch;
  std::string order;
  std::mutex guard;  // the turn alone would do, but it is the system's, which a thread sanitizer cannot see
  std::thread other;
  const auto note = [&](const char* who) {
    const std::lock_guard lock(guard);
    order += who;
  };
  {
    const io::DirectoryLock first(scratch.path());
    std::atomic<bool> waits = false;
    other = std::thread([&] {
      const io::DirectoryLock second(scratch.path(), [&] { waits = true; });
      note("second");
    });
    while (!waits) std::this_thread::yield();
    note("first ");
  }
  other.join();
  CHECK(order == "first second");
  CHECK(io::list(scratch.path()).empty());
  CHECK(fault_of([&] { io::DirectoryLock none(scratch / "none"); }) == Fault::file);
}

TEST_CASE("io: a folder that cannot be looked at is not one that is not there") {
  Scratch scratch;
  REQUIRE(::symlink("circle", (scratch / "circle").c_str()) == 0);
  CHECK(fault_of([&] { io::is_directory(scratch / "circle"); }) == Fault::file);
  CHECK_FALSE(io::is_directory(scratch / "none"));
  CHECK(fault_of([&] { io::list(scratch / "circle"); }) == Fault::file);
}

TEST_CASE("io: files without a size are read to their end") {
  if (!io::exists("/proc/self/status")) return;
  CHECK(io::read("/proc/self/status").find("Name:") != std::string::npos);
}

TEST_CASE("io: what is no regular file is not read, and no pipe is waited for") {
  Scratch scratch;
  const Path pipe = scratch / "pipe", socket = scratch / "socket", link = scratch / "link";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  REQUIRE(::mknod(socket.c_str(), S_IFSOCK | 0600, 0) == 0);
  REQUIRE(::symlink("pipe", link.c_str()) == 0);
  const auto refused = [&](const Path& path, const char* what) {
    INFO(path.string());
    const auto is_named = containing(text("cannot read ", path, ": it is ", what));
    CHECK_THROWS_WITH(io::read(path), is_named);
    CHECK_THROWS_WITH(io::size(path), is_named);
    CHECK(fault_of([&] { io::read(path); }) == Fault::file);
  };
  refused(pipe, "a pipe");
  refused(link, "a pipe");
  refused(socket, "a socket");
  refused("/dev/null", "a device");
  refused(scratch.path(), "a folder");
  CHECK_THROWS_WITH(io::truncate(pipe, 0), containing("is a pipe"));
  CHECK_THROWS_WITH(io::read(scratch / "none"), containing("cannot open") && containing("No such file"));
  REQUIRE(::symlink("file", (scratch / "to-file").c_str()) == 0);
  io::write(scratch / "file", "text");
  CHECK(io::read(scratch / "to-file") == "text");
}

TEST_CASE("io: where links are refused, nothing is written through one, nor into a pipe or a folder") {
  Scratch scratch;
  const Path victim = scratch.file("victim", "keep\n"), link = scratch / "link", pipe = scratch / "pipe";
  io::make_directories(scratch / "folder");
  REQUIRE(::symlink("victim", link.c_str()) == 0);
  REQUIRE(::symlink("nowhere", (scratch / "dangling").c_str()) == 0);
  REQUIRE(::symlink("/dev/null", (scratch / "device").c_str()) == 0);
  REQUIRE(::symlink("folder", (scratch / "elsewhere").c_str()) == 0);
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const auto& [name, what] :
       {std::pair{"link", "link is a link to victim, where heed writes a file. It is not followed"},
        std::pair{"dangling", "is a link to nowhere"}, std::pair{"device", "is a link to /dev/null"},
        std::pair{"pipe", "pipe is a pipe, where heed writes a file. Remove it"},
        std::pair{"folder", "folder is a folder, where"}}) {
    INFO(name);
    const Path path = scratch / name;
    CHECK_THROWS_WITH(io::write_own(path, "x"), containing(what));
    CHECK_THROWS_WITH(io::Appender(path), containing(what));
    CHECK_THROWS_WITH(io::truncate_after(path, [](std::string_view) { return true; }), containing(what));
    CHECK_THROWS_WITH(io::write_new(path, "x"), containing("File exists"));
    CHECK(io::is_there(path));
  }
  CHECK_THROWS_WITH(io::make_directory(scratch / "elsewhere"),
                    containing("elsewhere is a link to folder, where heed writes a folder"));
  CHECK_THROWS_WITH(io::make_directory(victim), containing("victim is a file, where heed writes a folder"));
  CHECK_NOTHROW(io::make_directory(scratch / "folder"));
  CHECK(io::read(victim) == "keep\n");
  CHECK_FALSE(io::is_there(scratch / "nowhere"));
  CHECK(io::list(scratch / "folder").empty());
  io::write_own(scratch / "new", "1\n");
  io::Appender(scratch / "new").line("2");
  CHECK(io::read(scratch / "new") == "1\n2\n");
}

TEST_CASE("io: a temporary name cannot be foreseen, so no link waits there") {
  Scratch scratch;
  const std::string folder = scratch.path().string();
  const auto temporary = [&] {
    synced();
    io::write(folder + "/file", "x");
    return synced().at(0);
  };
  const std::string first = temporary(), second = temporary();
  CHECK(first != second);
  CHECK_THAT(first, containing(folder + "/.file."));
  CHECK(first.size() == folder.size() + std::string("/.file.0123456789abcdef.tmp").size());
}

TEST_CASE("io: what is removed is the link, not what it leads to") {
  Scratch scratch;
  io::make_directories(scratch / "victim");
  io::write(scratch / "victim/file", "keep");
  io::make_directories(scratch / "folder");
  REQUIRE(::symlink("../victim", (scratch / "folder/link").c_str()) == 0);
  io::remove_all(scratch / "folder");
  CHECK(io::read(scratch / "victim/file") == "keep");
  CHECK(io::list(scratch.path()) == std::vector<Path>{"victim"});
}

TEST_CASE("io: a file that is written again keeps its mode, and is never open to more people meanwhile") {
  Scratch scratch;
  const Path path = scratch / "private";
  const auto mode = [&] {
    struct stat found {};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    return found.st_mode & 0777;
  };
  for (const mode_t asked : {0600, 0640, 0444, 0755}) {
    io::write(path, "old");
    REQUIRE(::chmod(path.c_str(), asked) == 0);
    io::write(path, "new");
    CHECK(mode() == asked);
    io::write_own(path, "newer");
    CHECK(mode() == asked);
    CHECK(io::read(path) == "newer");
    REQUIRE(::unlink(path.c_str()) == 0);
  }
}

TEST_CASE("io: a link that is written to stays, and what it leads to is replaced or made") {
  Scratch scratch;
  io::make_directories(scratch / "kept");
  io::write(scratch / "kept/file", "old");
  REQUIRE(::symlink("kept/file", (scratch / "link").c_str()) == 0);
  REQUIRE(::symlink("link", (scratch / "again").c_str()) == 0);
  REQUIRE(::symlink("kept/made", (scratch / "ahead").c_str()) == 0);
  io::write(scratch / "again", "new");
  io::write(scratch / "ahead", "first");
  CHECK(io::read(scratch / "kept/file") == "new");
  CHECK(io::read(scratch / "kept/made") == "first");
  for (const char* link : {"link", "again", "ahead"}) CHECK(std::filesystem::is_symlink(scratch / link));
  CHECK(io::list(scratch / "kept") == std::vector<Path>{"file", "made"});

  REQUIRE(::symlink("two", (scratch / "one").c_str()) == 0);
  REQUIRE(::symlink("one", (scratch / "two").c_str()) == 0);
  CHECK(fault_of([&] { io::write(scratch / "one", "x"); }) == Fault::file);
  CHECK_THROWS_WITH(io::write(scratch / "one", "x"), containing("symbolic links"));
  CHECK(fault_of([&] { io::write_own(scratch / "link", "x"); }) == Fault::file);
  CHECK(io::read(scratch / "kept/file") == "new");
}
