// Endings of runs: what a failure keeps, what a kill leaves to do, and the advice shown.
#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

namespace {

/// A run of recall that takes a moment, and more settings.
std::vector<std::string> small(const std::string& name, const std::vector<std::string>& more) {
  return with({"train", "recall", "--name", name, "--d-model", "16", "--heads", "2", "--d-ff", "16",
               "--layers", "1", "--batch-size", "16", "--threads", "1"},
              more);
}

Json manifest_of(const Path& run) { return parse_json(io::read(run / "manifest.json"), "manifest"); }

}  // namespace

TEST_CASE("endings: a run that fails before its first line of metrics keeps its checkpoints") {
  Shell shell;
  // Each tenth of 2000 steps is logged.
  const Result failed = shell.run_with_fault(
      "parameter@7", small("a", {"--steps", "2000", "--checkpoint-every", "2", "--quiet"}));
  CHECK(failed.code == 4);
  CHECK_THAT(failed.err, containing("Last good: step_000006."));
  REQUIRE_FALSE(list_checkpoints(shell.scratch / "runs/a").empty());
  CHECK(list_checkpoints(shell.scratch / "runs/a").back() == 6);
  CHECK(shell.run({"resume", "runs/a", "--steps", "8", "--quiet"}).code == 0);
}

TEST_CASE("endings: scores come last, so that a run killed before them gets all that is missing") {
  const Shell shell;
  const Path run = shell.scratch / "runs/a";
  REQUIRE(shell.run(small("a", {"--steps", "4", "--quiet"})).code == 0);
  const std::string scores = io::read(run / "scores.json");
  for (const char* name : {"scores.json", "report.html", "samples.txt", "metrics.csv"})
    io::remove_all(run / name);
  // A report that cannot be written stops it where a kill might.
  io::make_directories(run / "report.html/taken");
  CHECK(shell.run({"resume", "runs/a", "--quiet"}).code == 5);
  CHECK(!io::exists(run / "scores.json"));
  io::remove_all(run / "report.html");
  CHECK(shell.run({"resume", "runs/a", "--quiet"}).code == 0);
  CHECK(io::read(run / "scores.json") == scores);
  for (const char* name : {"report.html", "samples.txt", "metrics.csv"}) CHECK(io::exists(run / name));
  CHECK(manifest_of(run).at("took").at("steps").integer() == 4);  // which the first session took
}

TEST_CASE("endings: resuming a run that is done, or to fewer steps than it has, changes nothing") {
  const Shell shell;
  const Path run = shell.scratch / "runs/a";
  REQUIRE(shell.run(small("a", {"--steps", "4", "--quiet"})).code == 0);
  REQUIRE(shell.run(small("b", {"--steps", "4", "--seed", "2", "--quiet"})).code == 0);
  const auto files = [&] {
    std::string all;
    for (const char* name : {"config.toml", "manifest.json", "scores.json", "report.html"})
      all += io::read(run / name);
    return all;
  };
  const std::string before = files();
  const Result done = shell.run({"resume", "runs/a"});
  CHECK(done.code == 0);
  CHECK_THAT(done.err, containing("the run has its 4 steps"));
  CHECK((files() == before));
  check_refused(shell, {"resume", "runs/a", "--steps", "3"}, 2, {"--steps 3", "4 steps", "--checkpoint"});
  CHECK((files() == before));
  CHECK(manifest_of(run).at("took").at("steps").integer() == 4);
  CHECK(shell.run({"compare", "runs/a", "runs/b"}).code == 0);
}

TEST_CASE("endings: what is advised next is what goes on") {
  const Shell shell;
  const Result whole = shell.run(small("a", {"--steps", "4"}));
  CHECK_THAT(whole.err, containing("heed resume runs/a --steps 8"));
  const Result late = shell.run(small("b", {"--steps", "4000", "--time-limit", "0.001"}));
  CHECK(late.code == 0);
  CHECK_THAT(late.err, containing("time limit") && containing("heed resume runs/b --time-limit "));
  CHECK_THAT(late.err, !containing("--steps"));
  const Result patience_exhausted =
      shell.run(small("c", {"--steps", "400", "--lr", "0", "--validate-every", "1", "--patience", "2"}));
  CHECK(patience_exhausted.code == 0);
  CHECK_THAT(patience_exhausted.err,
             containing("patience") && containing("2 validations") && containing("step 3 of 400"));
  CHECK_THAT(patience_exhausted.err, containing("heed resume runs/c --patience 4") && !containing("--steps"));
}

TEST_CASE("endings: a run that reaches its score is done, and goes on as one that had none") {
  const Shell shell;
  const auto run = [](const std::string& name, const std::string& score) {
    return small(name, {"--steps", "8", "--validate-every", "2", "--stop-score", score});
  };
  const Result done = shell.run(run("a", "0.001"));  // an accuracy
  CHECK(done.code == 0);
  CHECK_THAT(done.err, containing("as good as train.stop_score = 0.001: stopped at step 2 of 8") &&
                           containing("heed resume runs/a --stop-score 0"));
  CHECK_THAT(shell.run({"resume", "runs/a"}).err, containing("--stop-score 0 to go on"));
  CHECK(shell.run(run("b", "1")).code == 0);
  CHECK(shell.run({"resume", "runs/a", "--stop-score", "0", "--quiet"}).code == 0);
  const auto last = [&](const char* name) {
    return io::read(shell.scratch / "runs" / name / "ckpt/step_000008/model.safetensors");
  };
  CHECK((last("a") == last("b")));
}

TEST_CASE("endings: a run that patience ends at its last step suggests more of both") {
  const Shell shell;
  const Result both =
      shell.run(small("a", {"--steps", "3", "--lr", "0", "--validate-every", "1", "--patience", "2"}));
  CHECK_THAT(both.err, containing("heed resume runs/a --steps 6 --patience 4"));
  CHECK_THAT(shell.run({"resume", "runs/a"}).err, containing("the run has its 3 steps"));
  CHECK(shell.run({"resume", "runs/a", "--steps", "6", "--patience", "4", "--quiet"}).code == 0);
  CHECK(list_checkpoints(shell.scratch / "runs/a").back() == 5);
}

TEST_CASE("endings: a run out of patience is done, and with more of it goes on as one that always had it") {
  const Shell shell;
  const auto still = [&](const std::string& name, const std::string& patience) {
    return small(name, {"--steps", "8", "--lr", "0", "--validate-every", "1", "--patience", patience,
                        "--keep-checkpoints", "9", "--quiet"});
  };
  REQUIRE(shell.run(still("a", "2")).code == 0);
  REQUIRE(shell.run(still("b", "4")).code == 0);
  const Path run = shell.scratch / "runs/a";
  const std::string before = io::read(run / "config.toml") + io::read(run / "manifest.json");
  const Result done = shell.run({"resume", "runs/a", "--steps", "16"});
  CHECK(done.code == 0);
  CHECK_THAT(done.err, containing("2 validations without a better one") && containing("--patience N"));
  CHECK((io::read(run / "config.toml") + io::read(run / "manifest.json") == before));
  check_refused(shell, {"resume", "runs/a", "--patience", "-1"}, 2, {"train.patience = -1"});
  CHECK(shell.run({"resume", "runs/a", "--patience", "4", "--quiet"}).code == 0);
  REQUIRE(list_checkpoints(run).back() == 5);
  const auto last = [&](const char* name) {
    const Path checkpoint = shell.scratch / "runs" / name / "ckpt/step_000005";
    return io::read(checkpoint / "model.safetensors") + io::read(checkpoint / "optim.safetensors");
  };
  CHECK((last("a") == last("b")));
}
