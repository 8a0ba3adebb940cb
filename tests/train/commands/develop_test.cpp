// heed train's options of development, from outside: --fast-dev-run, --overfit, --trace.
#include <algorithm>

#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/metrics_log.h"

using namespace heed;

namespace {

const std::vector<std::string> small{"--d-model", "16",       "--heads", "2",         "--d-ff",
                                     "16",        "--layers", "1",       "--threads", "1"};

/// heed in a folder whose temporary folder is its own.
struct OwnTemporary : Shell {
  OwnTemporary() {
    io::make_directories(scratch / "temporary");
    before = {"env", "TMPDIR=" + (scratch / "temporary").string()};
  }
  bool left_nothing() const {
    return !io::exists(scratch / "runs") && io::list(scratch / "temporary").empty();
  }
};

}  // namespace

TEST_CASE("fast dev run: two steps of everything, and nothing is left") {
  const OwnTemporary shell;
  for (const char* preset : {"recall", "translate", "lm", "mnist"}) {
    CAPTURE(preset);
    const Result result = shell.run(with({"train", preset, "--fast-dev-run"}, small));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    for (const char* part : {"schedule", "2 steps", "best ", "test ", "report.html", "removed "})
      CHECK_THAT(result.err, containing(part));
    CHECK(result.err.find("resume") == std::string::npos);
    CHECK(shell.left_nothing());
  }
  // A run that fails leaves nothing either.
  const Result failed = shell.run(with({"train", "lm", "--fast-dev-run", "--data", "no.txt"}, small));
  CHECK(failed.code == 5);
  CHECK(shell.left_nothing());
}

TEST_CASE("fast dev run: what others have made is neither followed nor removed") {
  OwnTemporary shell;
  const std::vector<std::string> words = with({"train", "recall", "--fast-dev-run", "--quiet"}, small);
  io::make_directories(shell.scratch / "victim");
  io::write(shell.scratch / "victim/precious", "years");
  // The name that its process number gives it, which exec leaves the shell's.
  for (const char* make : {"ln -s ../victim", "cp -r victim"}) {
    CAPTURE(make);
    const Path name = shell.scratch / "temporary/heed-fast-dev-run-";
    shell.before = {"env", "TMPDIR=" + (shell.scratch / "temporary").string(), "sh", "-c",
                    text(make, " ", name.string(), "$$; exec \"$0\" \"$@\"")};
    const Result result = shell.run(words);
    CAPTURE(result.err);
    CHECK(result.code == 0);
    const std::vector<Path> left = io::list(shell.scratch / "temporary");
    REQUIRE(left.size() == 1);
    CHECK(io::list(shell.scratch / "temporary" / left[0]) == std::vector<Path>{"precious"});
    io::remove_all(shell.scratch / "temporary" / left[0]);
  }
  CHECK(io::list(shell.scratch / "victim") == std::vector<Path>{"precious"});
  shell.before = {"env", "TMPDIR=" + (shell.scratch / "missing").string()};
  check_refused(shell, words, 5,
                {"cannot make a temporary folder in ", "/missing: No such file", "Set TMPDIR"});
}

TEST_CASE("fast dev run: --out keeps the run, with scores, report and two validations") {
  const OwnTemporary shell;
  const Result result =
      shell.run(with({"train", "translate-small", "--fast-dev-run", "--out", "kept"}, small));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const Path run = shell.scratch / "kept/translate-small-001";
  for (const char* file : {"report.html", "scores.json", "samples.txt"}) CHECK(io::exists(run / file));
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    if (one.name == "loss" || one.name == "valid_loss") CHECK(one.steps == std::vector<int64_t>{1, 2});
  }
  CHECK(list_checkpoints(run).back() == 2);
  CHECK_THAT(result.err, containing("heed resume kept/translate-small-001"));
  CHECK(io::list(shell.scratch / "temporary").empty());
}

TEST_CASE("overfit: the command says whether the model has learned its batches") {
  const Shell shell;
  const Result result =
      shell.run(with({"train", "recall", "--overfit", "1", "--steps", "150", "--batch-size", "8", "--lr",
                      "1e-2", "--set", "data.validation=50", "--set", "data.test_size=50", "--name", "few"},
                     small));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err, containing("overfit") && containing("it has learned these batches by heart"));
  const std::string config = io::read(shell.scratch / "runs/few/config.toml");
  CHECK_THAT(config, containing("overfit_batches = 1"));
  // Resumed, it trains on the same batch.
  const Result resumed = shell.run({"resume", "runs/few", "--steps", "152"});
  REQUIRE(resumed.code == 0);
  CHECK_THAT(resumed.err, containing("by heart"));
}

TEST_CASE("trace: the command writes a timeline of steps beside the run") {
  const Shell shell;
  const Result result = shell.run(with({"train", "recall", "--steps", "4", "--trace", "traces/a.json",
                                        "--set", "data.validation=50", "--set", "data.test_size=50"},
                                       small));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err, containing("traces/a.json: 3 steps, "));
  CHECK(parse_json(io::read(shell.scratch / "traces/a.json"), "trace").at("traceEvents").list().size() > 100);
}

TEST_CASE("train: a model of more tensors than a checkpoint holds is refused before the first step") {
  const Shell shell;
  const std::vector<std::string> deep{"train",   "lm",      "--layers", "3000", "--d-model",      "8",
                                      "--heads", "1",       "--d-ff",   "8",    "--num-examples", "2000",
                                      "--quiet", "--steps", "1"};
  check_refused(shell, deep, 2, {"the model has ", "at most 32768", "Lower model.layers"});
  CHECK(io::list(shell.scratch / "runs").empty());
  const Result plan = shell.run(with(deep, {"--dry-run", "--json"}));
  CHECK(plan.code == 2);
  CHECK_THAT(plan.err, containing("at most 32768"));
}

TEST_CASE("trace: one that cannot be written is an error, of a run that is whole") {
  if (!io::exists("/dev/full")) return;
  const Shell shell;
  const Result result = shell.run(with({"train", "recall", "--steps", "4", "--trace", "/dev/full", "--name",
                                        "whole", "--set", "data.validation=50", "--set", "data.test_size=50"},
                                       small));
  CHECK(result.code == 5);
  CHECK_THAT(result.err, containing("error: the run has ended as it should, but its trace is not written") &&
                             containing("/dev/full: No space left"));
  CHECK(io::exists(shell.scratch / "runs/whole/scores.json"));
}

TEST_CASE("develop: options that do not go together are refused, and leave nothing") {
  const OwnTemporary shell;
  const auto refused = [&](const std::vector<std::string>& words, const std::vector<std::string>& parts) {
    check_refused(shell, with({"train", "recall"}, words), 2, parts);
    CHECK(shell.left_nothing());
  };
  refused({"--fast-dev-run", "--overfit", "2"}, {"--fast-dev-run and --overfit do not go together"});
  refused({"--dry-run", "--trace", "a.json"}, {"--dry-run and --trace"});
  refused({"--fast-dev-run", "--steps", "9"},
          {"--steps: train.max_steps = 9", "--fast-dev-run sets it to 2"});
  refused({"--overfit", "0"}, {"--overfit 0"});
  refused({"--overfit", "few"}, {"--overfit = 'few'"});
  refused({"--overfit", "2", "--dropout", "0.1"},
          {"--dropout: model.dropout = 0.1", "--overfit 2 sets it to 0"});
}
