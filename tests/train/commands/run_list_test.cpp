// The list of runs: what it finds, says of each, sorts by, and shows in 80 columns.
#include "heed/train/commands/run_list.h"

#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/terminal.h"
#include "heed/tests/train/shell.h"
#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/run_folder.h"

using namespace heed;

namespace {

struct Planted {
  std::string preset = "lm";
  std::vector<std::pair<std::string, std::string>> settings = {};
  int64_t steps = 100;  ///< last step in the manifest
  std::string started = "2026-01-01T00:00:00Z";
  std::string state = {};   ///< state.json of its checkpoint; empty: no checkpoint
  int64_t step = 40;        ///< step of the checkpoint
  std::string scores = {};  ///< scores.json
};

/// A run that looks as training leaves it.
Path plant(const Path& out, const std::string& name, const Planted& planted) {
  Config config = make_config(planted.preset);
  for (const auto& [key, value] : planted.settings) config.set(key, value, "");
  const RunFolder run = RunFolder::create({.out = out, .name = name, .config = to_toml(config)});
  run.write_manifest(
      Json::object({{"format", run_format}, {"started", planted.started}, {"steps", planted.steps}}));
  if (!planted.state.empty()) {
    write_checkpoint(run.path(), planted.step, {{"state.json", planted.state}});
    mark_best(run.path(), planted.step);
  }
  if (!planted.scores.empty()) io::write(run.path() / "scores.json", planted.scores);
  return run.path();
}

const ListedRun& run_named(const std::vector<ListedRun>& runs, const std::string& name) {
  for (const ListedRun& run : runs) {
    if (run.path.filename() == name) return run;
  }
  throw std::runtime_error("no run " + name);
}

std::vector<std::string> names_of(const std::vector<ListedRun>& runs) {
  std::vector<std::string> names;
  for (const ListedRun& run : runs) names.push_back(run.path.filename().string());
  return names;
}

const char* const of_loss = R"({"best": {"loss": 2.5}, "lower_is_better": true})";

}  // namespace

TEST_CASE("run list: task, attention, score, steps, date and state of each run, those of compare too") {
  Scratch scratch;
  plant(scratch.path(), "fresh", {});
  plant(scratch.path(), "stopped",
        {.settings = {{"attention.decoder", "linear"}, {"attention.encoder", "linear"}}, .state = of_loss});
  plant(scratch.path() / "compare-x/runs", "deep",
        {.preset = "translate",
         .settings = {{"attention.cross", "additive"}},
         .started = "2026-03-04T05:06:07Z",
         .state = R"({"best": {"loss": 1.5, "bleu": 80}, "lower_is_better": true})",
         .step = 100,
         .scores = R"({"step": 90, "of": 100, "loss": 1.4, "bleu": 90.678, "by_length": []})"});
  plant(scratch.path(), "extended",
        {.state = of_loss, .step = 60, .scores = R"({"step": 40, "of": 40, "loss": 2.25})"});
  const RunFolder held = RunFolder::resume(plant(scratch.path(), "held", {.state = of_loss}), "heed train");
  io::write(scratch / "no-run.txt", "x");
  io::make_directories(scratch / "empty/folder");
  REQUIRE(::symlink("stopped", (scratch / "linked").c_str()) == 0);

  const std::vector<ListedRun> runs = list_of_runs(scratch.path());
  CHECK(names_of(runs) == std::vector<std::string>{"deep", "extended", "fresh", "held", "linked", "stopped"});
  const ListedRun& deep = run_named(runs, "deep");
  CHECK(deep.path == scratch / "compare-x/runs/deep");
  CHECK(deep.task == "translate");
  CHECK(deep.attention == "softmax, cross additive");
  CHECK(deep.score_name == "bleu");
  CHECK(deep.score == 90.678);
  CHECK(deep.on_test);
  CHECK_FALSE(deep.lower_is_better);
  CHECK(deep.started == "2026-03-04T05:06:07Z");
  CHECK(deep.state == "done");
  CHECK(deep.step == 100);
  const ListedRun& stopped = run_named(runs, "stopped");
  CHECK(stopped.attention == "linear");
  CHECK(stopped.score_name == "loss");
  CHECK(stopped.score == 2.5);
  CHECK_FALSE(stopped.on_test);
  CHECK(stopped.state == "stopped");
  CHECK(stopped.step == 40);
  CHECK(stopped.steps == 100);
  CHECK(run_named(runs, "fresh").state == "new");
  CHECK(run_named(runs, "held").state == "running");
  CHECK(run_named(runs, "extended").state == "stopped");
  CHECK(run_named(runs, "extended").step == 60);
  CHECK(list_of_runs(scratch / "nowhere").empty());
}

TEST_CASE(
    "run list: a run whose checkpoints are gone is lost, and a best score that was not finite is none") {
  Scratch scratch;
  const Path run = plant(scratch.path(), "lost", {.state = of_loss, .scores = R"({"of": 40, "loss": 2.25})"});
  RunFolder::elsewhere(run).note_checkpoint(40);
  CHECK(list_of_runs(scratch.path())[0].state == "done");
  io::remove_all(run / "ckpt");
  CHECK(list_of_runs(scratch.path())[0].state == "lost");
  plant(scratch.path(), "nan", {.state = R"({"best": {"loss": null}, "lower_is_better": true})"});
  const std::vector<ListedRun> runs = list_of_runs(scratch.path());
  CHECK(run_named(runs, "nan").problem.empty());
  CHECK(run_named(runs, "nan").score_name.empty());
}

TEST_CASE("run list: runs of fit(), of other programs, and imported ones have a state too") {
  Scratch scratch;
  const Path fitted =
      RunFolder::create({.out = scratch.path(), .name = "fitted", .config = "# Of fit().\ntask = \"fit\"\n"})
          .path();
  write_checkpoint(fitted, 7, {{"state.json", of_loss}});
  const Path foreign =
      RunFolder::create({.out = scratch.path(), .name = "foreign", .config = "task = \"parity\"\n"}).path();
  write_checkpoint(foreign, 8, {{"state.json", of_loss}});
  write_checkpoint(plant(scratch.path(), "imported", {}), 0, {{"model.safetensors", "x"}});
  const std::vector<ListedRun> runs = list_of_runs(scratch.path());
  CHECK(run_named(runs, "fitted").task == "fit");
  CHECK(run_named(runs, "fitted").state == "saved");
  CHECK(run_named(runs, "fitted").step == 7);
  CHECK(run_named(runs, "foreign").task == "parity");
  CHECK(run_named(runs, "foreign").state == "stopped");
  CHECK(run_named(runs, "imported").state == "imported");
}

TEST_CASE("run list: what cannot be read is listed with its reason, and the rest too") {
  Scratch scratch;
  REQUIRE(::symlink("circle", (scratch / "circle").c_str()) == 0);
  for (const char* name : {"a", "b", "c", "d", "e"}) plant(scratch.path(), name, {.state = of_loss});
  const auto pipe = [&](const Path& path) {
    io::remove_all(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  };
  pipe(scratch / "a/config.toml");
  pipe(scratch / "b/ckpt/best.json");
  io::write(scratch / "c/manifest.json", "{");
  io::remove_all(scratch / "d/config.toml");
  REQUIRE(::symlink("config.toml", (scratch / "d/config.toml").c_str()) == 0);
  const std::vector<ListedRun> runs = list_of_runs(scratch.path());
  CHECK(names_of(runs) == std::vector<std::string>{"a", "b", "c", "circle", "d", "e"});
  for (const char* name : {"a", "b", "c", "circle", "d"}) {
    INFO(name);
    CHECK(run_named(runs, name).state == "unreadable");
    CHECK_THAT(run_named(runs, name).problem, containing(text(scratch / name)));
  }
  CHECK(run_named(runs, "e").problem.empty());
  const std::string shown = runs_text(runs, false);
  CHECK_THAT(shown, containing("config.toml: it is a pipe") && containing("unreadable: "));
}

TEST_CASE("run list: sorted by name, date or score, of which the best comes first") {
  Scratch scratch;
  plant(scratch.path(), "a",
        {.started = "2026-01-02T00:00:00Z", .state = R"({"best": {"loss": 3}, "lower_is_better": true})"});
  plant(scratch.path(), "b",
        {.started = "2026-01-03T00:00:00Z", .state = R"({"best": {"loss": 1}, "lower_is_better": true})"});
  plant(scratch.path(), "c", {.started = "2026-01-01T00:00:00Z"});
  plant(scratch.path(), "d",
        {.preset = "mnist", .state = R"({"best": {"accuracy": 0.5, "loss": 1}, "lower_is_better": false})"});
  plant(scratch.path(), "e",
        {.preset = "mnist", .state = R"({"best": {"accuracy": 0.75, "loss": 1}, "lower_is_better": false})"});
  std::vector<ListedRun> runs = list_of_runs(scratch.path());
  sort_runs(runs, "date");
  CHECK(names_of(runs) == std::vector<std::string>{"b", "a", "c", "d", "e"});
  sort_runs(runs, "score");
  CHECK(names_of(runs) == std::vector<std::string>{"b", "a", "e", "d", "c"});
  sort_runs(runs, "name");
  CHECK(names_of(runs) == std::vector<std::string>{"a", "b", "c", "d", "e"});
  CHECK_THROWS_WITH(sort_runs(runs, "scor"), containing("--sort 'scor' is unknown") && containing("score"));
}

TEST_CASE("run list: the table keeps to 80 columns, whatever is long") {
  std::vector<ListedRun> runs;
  for (const size_t length : {3, 30, 120}) {
    runs.push_back({.path = "runs/" + std::string(length, 'n'),
                    .task = "lra-pathfinder-of-a-long-name",
                    .attention = "longformer:window=64,global=2 / linear:epsilon=1e-5, cross additive",
                    .score_name = "a_score_with_a_long_name_indeed",
                    .score = 0.123456789,
                    .step = 100000,
                    .steps = 250000,
                    .started = "2026-03-04T05:06:07Z",
                    .state = "stopped"});
  }
  runs.push_back({.path = "runs/\033[31mx",
                  .problem = "cannot read runs/x/config.toml: " + std::string(70, 'w') + " and more"});
  const std::string table = runs_text(runs, false);
  std::istringstream lines(table);
  int64_t wide = 0;
  for (std::string line; std::getline(lines, line);) wide += display_width(line) > 80 ? 1 : 0;
  CHECK(wide == 1);  // the name of 120 letters, which is shown whole
  CHECK_THAT(table,
             containing(std::string(120, 'n')) && containing("100000/250000") && containing("2026-03-04"));
  CHECK(table.find('\033') == std::string::npos);
  const std::string whole = runs_text(runs, true);
  CHECK_THAT(whole, containing("cross additive") && containing("2026-03-04T05:06:07Z"));
  // What is short enough is not cut, however long the names of others are.
  std::vector<ListedRun> few{runs[0], runs[2]};
  for (ListedRun& one : few) {
    one.task = "lm";
    one.attention = "linear:epsilon=1e-5";
    one.score_name = "loss";
    one.steps = 123456789;
  }
  CHECK_THAT(runs_text(few, false),
             containing("runs/nnn  lm    linear:epsilon=1e-5  0.1235* loss  100000  2026-03-04  stopped"));
}

TEST_CASE("list runs: a table, JSON, and options that are for runs alone") {
  const Shell shell;
  plant(shell.scratch / "runs", "a", {.state = of_loss});
  const Result table = shell.run({"list", "runs"});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, containing("runs/a") && containing("2.5* loss") && containing("40/100"));
  const Result json = shell.run({"list", "runs", "--json", "--sort", "score"});
  REQUIRE(json.code == 0);
  const Json list = parse_json(json.out, "list");
  REQUIRE(list.list().size() == 1);
  CHECK(list.list()[0].at("run").text() == "runs/a");
  CHECK(list.list()[0].at("score").at("value").real() == 2.5);
  CHECK(list.list()[0].at("score").at("data").text() == "validation");
  const Result none = shell.run({"list", "runs", "--out", "elsewhere"});
  CHECK(none.code == 5);
  CHECK_THAT(none.err, containing("--out elsewhere is no folder"));
  io::make_directories(shell.scratch / "empty");
  const Result empty = shell.run({"list", "runs", "--out", "empty"});
  CHECK(empty.code == 0);
  CHECK(empty.out.empty());
  CHECK_THAT(empty.err, containing("there are no runs in empty"));
  check_refused(shell, {"list", "presets", "--sort", "name"}, 2, {"--sort is for runs"});
  check_refused(shell, {"list", "presets", "--wide"}, 2, {"--wide is for attention and runs"});
  check_refused(shell, {"list", "runs", "--sort", "loss"}, 2, {"--sort 'loss' is unknown"});
  check_refused(shell, {"list", "runs", "--counted"}, 2, {"--counted is for attention and layers"});
  check_refused(shell, {"list", "tasks", "--json"}, 2, {"--json is for attention, layers and runs"});
  check_refused(shell, {"list", "commands", "zsh"}, 2, {"unexpected argument 'zsh'"});
  check_refused(shell, {"list", "commands", "fish", "--completion"}, 2, {"'fish' is unknown", "bash"});
}
