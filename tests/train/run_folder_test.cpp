// Run folders: names, numbers, claims, locks.
#include "train/run_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include "core/io.h"
#include "tests/catch.h"
#include "tests/scratch.h"
#include "train/checkpoint.h"

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
