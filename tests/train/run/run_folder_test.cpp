// Run folders: names, numbers, claims, locks.
#include "heed/train/run/run_folder.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heed/core/io/file_lock.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/version.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

namespace {

/// What becomes of a call in a process of its own: 0 or the number of its Fault.
template <class Call>
pid_t in_child(Call call) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = 0;
  try {
    call();
  } catch (const Error& error) {
    code = static_cast<int>(error.fault());
  }
  ::_exit(code);
}

int exit_code(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("run folder: the settings are there from the moment that the folder is") {
  Scratch scratch;
  const RunFolder run = RunFolder::create({.out = scratch.path(), .name = "a", .config = "task = \"lm\"\n"});
  CHECK(io::read(run.config()) == "task = \"lm\"\n");
  CHECK(RunFolder::look(run.path()).path() == run.path());
}

TEST_CASE("run folder: what a run begins from is there before it has its name, or there is no run") {
  Scratch scratch;
  const auto options = [&](const std::function<void(const Path&)>& contents) {
    return RunOptions{.out = scratch / "runs", .name = "a", .config = "x = 1\n", .write_contents = contents};
  };
  const auto killed = [&](const Path& made) {
    write_checkpoint(made, 0, {{"model.safetensors", "weights"}});
    if (io::exists(scratch / "runs/a")) ::_exit(97);
    ::_exit(98);  // as a kill: nothing is cleaned up
  };
  CHECK(exit_code(in_child([&] { RunFolder::create(options(killed)); })) == 98);
  CHECK(!io::exists(scratch / "runs/a"));
  CHECK(io::list(scratch / "runs").size() == 1);  // its leftovers, which the next start removes

  const auto full = [&](const Path& made) {
    write_checkpoint(made, 0, {{"model.safetensors", "weights"}});
    fail(Fault::file, "the disk is full");
  };
  CHECK(fault_of([&] { RunFolder::create(options(full)); }) == Fault::file);
  const auto odd = [](const Path&) { throw std::bad_alloc(); };
  CHECK_THROWS_AS(RunFolder::create(options(odd)), std::bad_alloc);
  CHECK(io::list(scratch / "runs").empty());

  const auto whole = [](const Path& made) { write_checkpoint(made, 0, {{"model.safetensors", "weights"}}); };
  const RunFolder run = RunFolder::create(options(whole));
  CHECK(open_checkpoint(run.path()).file("model.safetensors") == "weights");
  CHECK(io::list(scratch / "runs") == std::vector<Path>{"a"});
}

TEST_CASE("run folder: runs without a name are numbered") {
  Scratch scratch;
  const Path out = scratch / "deep/runs";
  CHECK(RunFolder::create({.out = out, .base = "translate"}).path() == out / "translate-001");
  CHECK(RunFolder::create({.out = out, .base = "translate"}).path() == out / "translate-002");
  io::make_directories(out / "translate-0041");
  io::make_directories(out / "translate-x");
  io::make_directories(out / "lm-900");
  CHECK(RunFolder::create({.out = out, .base = "translate"}).path() == out / "translate-042");
  CHECK(RunFolder::create({.out = out, .base = "lm"}).path() == out / "lm-901");
  for (const Path& name : io::list(out)) CHECK_FALSE(name.native().starts_with('.'));
}

TEST_CASE("run folder: a name that is taken is refused kindly, or busy") {
  Scratch scratch;
  {
    const RunFolder run = RunFolder::create({.out = scratch.path(), .name = "a", .command = "heed train x"});
    io::write(run.config(), "");
    CHECK(fault_of([&] { RunFolder::create({.out = scratch.path(), .name = "a"}); }) == Fault::busy);
    CHECK_THROWS_WITH(RunFolder::create({.out = scratch.path(), .name = "a"}), containing("heed train x"));
    CHECK(fault_of([&] { RunFolder::resume(run.path(), "y"); }) == Fault::busy);
  }
  CHECK(fault_of([&] { RunFolder::create({.out = scratch.path(), .name = "a"}); }) == Fault::usage);
  CHECK_THROWS_WITH(RunFolder::create({.out = scratch.path(), .name = "a"}),
                    containing(text("heed resume ", scratch / "a")));
  io::write(scratch / "file", "");
  CHECK(fault_of([&] { RunFolder::create({.out = scratch.path(), .name = "file"}); }) == Fault::usage);
  io::make_directories(scratch / "empty");
  CHECK(RunFolder::create({.out = scratch.path(), .name = "empty"}).path() == scratch / "empty");
}

TEST_CASE("run folder: names that are paths or worse are refused") {
  Scratch scratch;
  for (const char* name :
       {"../x", "a/b", "/abs", ".", "..", ".hidden", "-x", "sp ace", "new\nline", "caf\xc3\xa9"}) {
    INFO(name);
    CHECK(fault_of([&] { RunFolder::create({.out = scratch / "runs", .name = name}); }) == Fault::usage);
  }
  CHECK_FALSE(io::exists(scratch / "runs"));
}

TEST_CASE("run folder: resuming needs a run and clears what a kill left") {
  Scratch scratch;
  CHECK(fault_of([&] { RunFolder::resume(scratch / "missing", "x"); }) == Fault::file);
  CHECK_THROWS_WITH(RunFolder::look(scratch.path()), containing("no config.toml"));
  const Path path = RunFolder::create({.out = scratch.path(), .name = "a"}).path();
  io::write(path / "config.toml", "x = 1\n");
  io::make_directories(path / "ckpt/.tmp-step_000001-99");
  io::write(path / "ckpt/.tmp-step_000001-99/model.safetensors", "half");
  io::write(path / ".manifest.json.99.tmp", "half");
  write_checkpoint(path, 1, {{"state.json", "{}"}});
  const RunFolder run = RunFolder::resume(path, "heed resume a");
  CHECK(io::list(run.checkpoints()) == std::vector<Path>{"step_000001"});
  CHECK(io::list(path) == std::vector<Path>{"ckpt", "config.toml", "lock"});
  CHECK(RunFolder::look(path).metrics() == path / "metrics.jsonl");
}

TEST_CASE("run folder: of many that start at once exactly one gets the name") {
  Scratch scratch;
  int done[2];
  REQUIRE(::pipe(done) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(in_child([&] {
      const RunFolder run = RunFolder::create({.out = scratch / "runs", .name = "same"});
      char byte = 0;
      ::close(done[1]);
      if (::read(done[0], &byte, 1) < 0) ::_exit(99);  // runs until the parent closes its end
    }));
  }
  ::usleep(300'000);
  ::close(done[1]);
  int won = 0;
  int busy = 0;
  for (const pid_t child : children) {
    const int code = exit_code(child);
    won += code == 0 ? 1 : 0;
    busy += code == static_cast<int>(Fault::busy) ? 1 : 0;
  }
  ::close(done[0]);
  CHECK(won == 1);
  CHECK(busy == 7);
  CHECK(io::list(scratch / "runs") == std::vector<Path>{"same"});
}

TEST_CASE("run folder: many that start at once without a name get one each") {
  Scratch scratch;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(in_child([&] { RunFolder::create({.out = scratch / "runs", .base = "x"}); }));
  }
  for (const pid_t child : children) CHECK(exit_code(child) == 0);
  CHECK(io::list(scratch / "runs").size() == 8);
}

TEST_CASE("run folder: claims are told dead by their locks, wherever their makers live") {
  Scratch scratch;
  const Path live = scratch / ".x.4194303.claim", dead = scratch / ".y.4194302.claim";
  io::make_directories(live);
  io::make_directories(dead);
  io::write(dead / "config.toml", "");
  io::write(dead / "lock", "");
  io::make_directories(scratch / ".u.1.claim");
  io::make_directories(scratch / ".v.1.claim/ckpt");
  const auto lock = io::FileLock::try_lock(live / "lock", true);
  io::make_directories(scratch / "victim");
  REQUIRE(::symlink("victim", (scratch / ".z.1.claim").c_str()) == 0);
  RunFolder::create({.out = scratch.path(), .name = "a"});
  CHECK(io::list(scratch.path()) ==
        std::vector<Path>{".v.1.claim", ".x.4194303.claim", ".z.1.claim", "a", "victim"});
  // its owner may be removing it, which a lock made in it would prevent
  CHECK(io::list(scratch / ".v.1.claim") == std::vector<Path>{"ckpt"});
  CHECK(io::list(live) == std::vector<Path>{"lock"});
  CHECK(io::list(scratch / "victim").empty());
}

TEST_CASE("run folder: a dead claim that cannot be removed blocks nobody") {
  if (::geteuid() != 0) {
    WARN("only root can start as another user: skipped");
    return;
  }
  Scratch scratch;
  io::make_directories(scratch / "runs/.x.7.claim");
  io::write(scratch / "runs/.x.7.claim/lock", "");
  REQUIRE(::chmod(scratch.path().c_str(), 0755) == 0);
  REQUIRE(::chmod((scratch / "runs").c_str(), 01777) == 0);
  const pid_t other = in_child([&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(99);
    RunFolder::create({.out = scratch / "runs", .name = "a"});
  });
  CHECK(exit_code(other) == 0);
  CHECK(io::list(scratch / "runs") == std::vector<Path>{".x.7.claim", "a"});
}

TEST_CASE("run folder: starts side by side in process namespaces of their own get a run each") {
  Scratch scratch;
  std::vector<pid_t> children;
  constexpr int refused = 99;
  for (int i = 0; i < 8; ++i) {
    children.push_back(in_child([&] {
      if (::unshare(CLONE_NEWPID) != 0) ::_exit(refused);
      const pid_t first = in_child([&] { RunFolder::create({.out = scratch / "runs", .base = "x"}); });
      ::_exit(exit_code(first));  // whose number is 1
    }));
  }
  std::vector<int> codes;
  for (const pid_t child : children) codes.push_back(exit_code(child));
  if (codes[0] == refused) {
    WARN("process namespaces are not permitted here: skipped");
    return;
  }
  for (const int code : codes) CHECK(code == 0);
  CHECK(io::list(scratch / "runs").size() == 8);
}

TEST_CASE("run folder: a claim that a neighbour takes for dead is made again") {
  Scratch scratch;
  std::vector<pid_t> children;
  // Some clear away all the time, so that claims are met before they are locked.
  for (int i = 0; i < 6; ++i) {
    children.push_back(in_child([&] {
      for (int k = 0; k < 20; ++k) RunFolder::create({.out = scratch / "runs", .base = "x"});
    }));
  }
  for (const pid_t child : children) CHECK(exit_code(child) == 0);
  CHECK(io::list(scratch / "runs").size() == 120);
}

TEST_CASE("run folder: a name that is a link is taken, wherever it leads") {
  Scratch scratch;
  io::make_directories(scratch / "victim");
  REQUIRE(::symlink("nowhere", (scratch / "a").c_str()) == 0);
  REQUIRE(::symlink("victim", (scratch / "b").c_str()) == 0);
  for (const char* name : {"a", "b"}) {
    CHECK(fault_of([&] { RunFolder::create({.out = scratch.path(), .name = name}); }) == Fault::usage);
  }
  CHECK(io::list(scratch.path()) == std::vector<Path>{"a", "b", "victim"});
  CHECK(io::list(scratch / "victim").empty());
}

TEST_CASE("run folder: one with links or pipes among its files is not resumed") {
  Scratch scratch;
  const Path path = RunFolder::create({.out = scratch.path(), .name = "a", .config = "x = 1\n"}).path();
  write_checkpoint(path, 1, {{"state.json", "{}"}});
  io::make_directories(scratch / "victim");
  io::write(scratch / "victim/file", "keep");
  for (const char* name : {"lock", "metrics.jsonl", "manifest.json", "config.toml", "scores.json", "tb",
                           "ckpt/best.json", "ckpt"}) {
    INFO(name);
    const Path aside = scratch / "aside";
    if (io::is_there(path / name)) io::rename_directory(path / name, aside);
    for (const Path& target : {scratch / "victim/file", scratch / "victim", scratch / "nowhere"}) {
      REQUIRE(::symlink(target.c_str(), (path / name).c_str()) == 0);
      CHECK(fault_of([&] { RunFolder::resume(path, "x"); }) == Fault::file);
      CHECK_THROWS_WITH(RunFolder::resume(path, "x"),
                        containing(text(path / name, " is a link to ", target)));
      io::remove_all(path / name);
    }
    REQUIRE(::mkfifo((path / name).c_str(), 0600) == 0);
    CHECK_THROWS_WITH(RunFolder::resume(path, "x"), containing(text(path / name, " is a pipe")));
    io::remove_all(path / name);
    if (io::is_there(aside)) io::rename_directory(aside, path / name);
  }
  CHECK(io::read(scratch / "victim/file") == "keep");
  CHECK(io::list(scratch / "victim") == std::vector<Path>{"file"});
  CHECK_FALSE(io::is_there(scratch / "nowhere"));
  REQUIRE(::symlink("a", (scratch / "link").c_str()) == 0);
  CHECK_NOTHROW(RunFolder::resume(scratch / "link", "x"));  // the run itself may be one
}

TEST_CASE("run folder: the manifest says where the run ran") {
  Scratch scratch;
  const RunFolder run = RunFolder::create({.out = scratch.path(), .name = "a"});
  const std::vector<std::string> arguments = {"heed", "train", "translate"};
  run.write_manifest(
      manifest_basics(arguments).set("seed", 1).set("data", Json::object({{"sha256", "9f31"}})));
  const Json read = parse_json(io::read(run.manifest()), "manifest.json");
  CHECK(read.at("heed").text() == HEED_VERSION);
  CHECK(read.at("command").list().size() == 3);
  CHECK(read.at("seed").integer() == 1);
  CHECK(read.at("data").at("sha256").text() == "9f31");
  CHECK(read.at("started").text().size() == 20);
  CHECK_FALSE(read.at("cpu").text().empty());
}
