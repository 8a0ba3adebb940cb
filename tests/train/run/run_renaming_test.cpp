// Runs renamed and removed: locks, links, names that are taken, and what names a run.
#include "heed/train/run/run_renaming.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/run_folder.h"

using namespace heed;

namespace {

Path plant_run(const Path& out, const std::string& name) {
  const RunFolder run = RunFolder::create({.out = out, .name = name, .config = "task = \"lm\"\n"});
  write_checkpoint(run.path(), 1, {{"state.json", "{}"}});
  return run.path();
}

/// The run's manifest says that it began from another run's weights.
void begin_from(const Path& run, const std::string& origin) {
  RunFolder::elsewhere(run).write_manifest(
      Json::object({{"format", run_format}, {"from", Json::object({{"run", origin}, {"step", 1}})}}));
}

std::string origin_of(const Path& run) {
  return RunFolder::elsewhere(run).read_manifest()->at("from").at("run").text();
}

}  // namespace

TEST_CASE("run renaming: folder, report and the manifests of runs that began from it have the new name") {
  Scratch scratch;
  const Path run = plant_run(scratch.path(), "old"), next = plant_run(scratch.path(), "next"),
             other = plant_run(scratch.path(), "other");
  io::write(run / "report.html", "<title>old</title><h1>old</h1><p>old</p>");
  begin_from(next, run.string() + "/");
  begin_from(other, (scratch / "older").string());
  const RenamedRun renamed = rename_run(run / "", "new", "heed runs");
  CHECK(renamed.path == scratch / "new");
  CHECK(renamed.updated == std::vector<Path>{next});
  CHECK_FALSE(io::is_there(run));
  CHECK(list_checkpoints(scratch / "new") == std::vector<int64_t>{1});
  CHECK(io::read(scratch / "new/report.html") == "<title>new</title><h1>new</h1><p>old</p>");
  CHECK(origin_of(next) == (scratch / "new").string());
  CHECK(origin_of(other) == (scratch / "older").string());
  CHECK_NOTHROW(RunFolder::resume(scratch / "new", "x"));  // nothing is locked any more
}

TEST_CASE("run renaming: refused where a name is taken or illegal, or a run in use, and nothing changes") {
  Scratch scratch;
  const Path run = plant_run(scratch.path(), "a"), next = plant_run(scratch.path(), "b");
  begin_from(next, run.string());
  REQUIRE(::symlink("nowhere", (scratch / "link").c_str()) == 0);
  for (const char* name : {"b", "link", "a"})
    CHECK_THROWS_WITH(rename_run(run, name, "x"), containing("exists already. Choose another name"));
  for (const char* name : {"", ".", "..", "x/y", "-x", "\033"}) {
    INFO(name);
    CHECK_THROWS_WITH(rename_run(run, name, "x"), containing("cannot name a run"));
  }
  for (const char* path : {"", ".", "/", "a/.."})
    CHECK_THROWS_WITH(rename_run(path, "c", "x"), containing("does not end in the name of a run"));
  {
    const RunFolder held = RunFolder::resume(run, "heed train");
    CHECK_THROWS_WITH(rename_run(run, "c", "x"),
                      containing(text(run, " is in use by pid ", ::getpid())) && containing("heed train"));
  }
  {
    const RunFolder held = RunFolder::resume(next, "heed train");
    CHECK_THROWS_WITH(rename_run(run, "c", "x"), containing(text(next, " is in use by pid ")));
  }
  io::make_directories(scratch / "compare/plans");
  io::write(scratch / "compare/plans/softmax-seed1.toml", "");
  const Path compared = plant_run(scratch / "compare/runs", "softmax-seed1");
  REQUIRE(::symlink("compare/runs", (scratch / "other").c_str()) == 0);
  for (const Path& way : {compared, scratch / "other/softmax-seed1"})
    CHECK_THROWS_WITH(rename_run(way, "c", "x"), containing("belongs to") && containing("compare"));
  // A folder of plans beside it alone is nobody's comparison.
  CHECK(rename_run(plant_run(scratch / "compare/runs", "mine"), "yours", "x").path.filename() == "yours");
  CHECK(io::list(scratch.path()) == std::vector<Path>{"a", "b", "compare", "link", "other"});
  CHECK(origin_of(next) == run.string());
}

TEST_CASE("run renaming: where a manifest cannot be written, all names are as they were") {
  Scratch scratch;
  const Path run = plant_run(scratch.path(), "a"), first = plant_run(scratch.path(), "b"),
             second = plant_run(scratch.path(), "c");
  for (const Path& next : {first, second}) begin_from(next, run.string());
  std::filesystem::rename(second / "manifest.json", scratch / "kept.json");
  std::filesystem::create_symlink(scratch / "kept.json", second / "manifest.json");  // read, but not written
  CHECK_THROWS_WITH(rename_run(run, "new", "x"), containing("manifest.json is a link"));
  CHECK(list_checkpoints(run) == std::vector<int64_t>{1});
  CHECK_FALSE(io::is_there(scratch / "new"));
  for (const Path& next : {first, second}) CHECK(origin_of(next) == run.string());
}

TEST_CASE("run removal: the run goes, and what links in it lead to stays") {
  Scratch scratch;
  const Path run = plant_run(scratch.path(), "a");
  io::make_directories(scratch / "victim");
  io::write(scratch / "victim/file", "keep");
  REQUIRE(::symlink("../victim", (run / "tb").c_str()) == 0);
  REQUIRE(::symlink("../../victim/file", (run / "ckpt/best.json").c_str()) == 0);
  REQUIRE(::mkfifo((run / "manifest.json").c_str(), 0600) == 0);
  RunFolder::hold(run, "x").remove();
  CHECK(io::list(scratch.path()) == std::vector<Path>{"victim"});
  CHECK(io::read(scratch / "victim/file") == "keep");
}

TEST_CASE("run removal: only what is the folder of a run, itself and not in use, is held for it") {
  Scratch scratch;
  const Path run = plant_run(scratch.path(), "a");
  io::make_directories(scratch / "folder");
  REQUIRE(::symlink("a", (scratch / "link").c_str()) == 0);
  const auto hold = [](const Path& path) { RunFolder::hold(path, "x"); };
  CHECK_THROWS_WITH(hold(scratch / "link"), containing("link is a link to a"));
  CHECK_THROWS_WITH(hold(scratch / "link/"), containing("link is a link to a"));
  CHECK_THROWS_WITH(hold(scratch / "folder"), containing("is not the folder of a run"));
  CHECK_THROWS_WITH(hold(scratch / "none"), containing("there is no run"));
  const Path inside = plant_run(run, "pretrain");
  CHECK_THROWS_WITH(hold(inside), containing("is a part of the run"));
  const RunFolder held = RunFolder::resume(run, "heed train");
  CHECK_THROWS_WITH(hold(run), containing("is in use by pid ") && containing("Stop that one"));
  CHECK(io::exists(run / "config.toml"));
}
