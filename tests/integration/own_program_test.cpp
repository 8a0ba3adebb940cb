// A program of one's own (tests/example/own_program.cpp) has every command, its own task, preset and command
// included.
#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/metrics_log.h"

using namespace heed;

namespace {

/// own_program in a folder with the file mine.toml, which trains 20 steps.
struct OwnShell : Shell {
  OwnShell() {
    started = {own_program()};
    io::write(scratch / "mine.toml",
              "task = \"commonest\"\n[model]\nlayers = 1\nd_model = 16\nheads = 2\nd_ff = 16\n"
              "[data]\nletters = 9\n[train]\nmax_steps = 20\ncheckpoint_every = 10\nvalidate_every = 10\n");
  }
};

std::vector<double> losses_of(const Path& run) {
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    if (one.name == "loss") return one.values;
  }
  return {};
}

}  // namespace

TEST_CASE("own program: it trains, resumes with the same numbers, evaluates and reports") {
  const OwnShell shell;
  const Result trained = shell.run({"train", "mine.toml", "--threads", "1"});
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.err, containing("own_program resume runs/mine-001 --steps 40"));
  CHECK_THAT(trained.err, containing("No maps: this task gives no attention maps"));
  const Path run = shell.scratch / "runs/mine-001";
  CHECK_THAT(io::read(run / "report.html"), containing("task commonest"));
  CHECK_THAT(io::read(run / "config.toml"), containing("letters = 9"));
  const double accuracy = parse_json(io::read(run / "scores.json"), "scores").at("accuracy").real();
  CHECK((accuracy > 0 && accuracy <= 1));

  const Result evaluated = shell.run({"evaluate", "runs/mine-001", "--json", "--threads", "1"});
  REQUIRE(evaluated.code == 0);
  CHECK(parse_json(evaluated.out, "evaluate").at("accuracy").real() == accuracy);

  // 10 steps, then the other 10: as the uninterrupted run.
  REQUIRE(
      shell.run({"train", "mine.toml", "--steps", "10", "--name", "half", "--schedule", "constant"}).code ==
      0);
  REQUIRE(shell.run({"resume", "runs/half", "--steps", "20"}).code == 0);
  REQUIRE(shell.run({"train", "mine.toml", "--name", "whole", "--schedule", "constant"}).code == 0);
  REQUIRE(losses_of(shell.scratch / "runs/whole").size() == 20);
  CHECK(losses_of(shell.scratch / "runs/half") == losses_of(shell.scratch / "runs/whole"));
}

TEST_CASE(
    "own program: its task, preset and command stand in lists, help and settings, behind the built-in") {
  const OwnShell shell;
  const auto listed = [&](const char* what, const std::string& before, const std::string& own) {
    const std::string out = shell.run({"list", what}).out;
    CAPTURE(out);
    const size_t first = out.find("  " + before), second = out.find("  " + own);
    REQUIRE(second != std::string::npos);
    CHECK(first < second);
  };
  listed("tasks", "lra-pathx", "commonest ");
  listed("presets", "lra-pathx", "commonest");
  listed("commands", "bench", "count        count the letters of a text");
  CHECK_THAT(shell.run({"list", "settings"}).out, containing("data.letters"));

  const Result shown_preset = shell.run({"show", "commonest"});
  REQUIRE(shown_preset.code == 0);
  CHECK_THAT(shown_preset.out, containing("task = \"commonest\"\npreset = \"commonest\"\n"));
  CHECK_THAT(shown_preset.out, containing("letters = 15 "));
  const std::string help = shell.run({"train", "--help"}).out;
  CHECK_THAT(help, containing("--letters VALUE"));
  CHECK_THAT(help, containing("own_program train"));
  CHECK_THAT(shell.run({}).out, containing("own_program COMMAND --help"));

  const Result counted = shell.run({"count", "abba"});
  CHECK(counted.code == 0);
  CHECK(counted.out == "a 2\nb 2\nc 0\nd 0\n");
  check_refused(shell, {"count"}, 2, {"own_program count needs TEXT"});
  check_refused(shell, {"cuont"}, 2, {"'cuont' is unknown", "count"});
  check_refused(shell, {"train", "commonst"}, 2, {"'commonst' is unknown", "commonest"});
  check_refused(shell, {"train", "commonest", "--letters", "3"}, 2, {"letters"});

  // The program heed does not have them.
  Shell plain;
  io::write(plain.scratch / "mine.toml", "task = \"commonest\"\n");
  check_refused(plain, {"train", "mine.toml"}, 2, {"mine.toml:1:8: task 'commonest' is unknown"});
}

TEST_CASE("own program: what its task does not give is said, and export names its tensors") {
  const OwnShell shell;
  REQUIRE(shell.run({"train", "mine.toml", "--steps", "2"}).code == 0);
  const Result inspected = shell.run({"inspect", "runs/mine-001"});
  CHECK(inspected.code == 2);
  CHECK_THAT(inspected.err, containing("error: this task gives no attention maps"));
  REQUIRE(shell.run({"export", "mine.toml", "--out", "model", "--rounds", "1"}).code == 0);
  const std::string batches = io::read(shell.scratch / "model/batches.safetensors");
  CHECK_THAT(batches, containing("000000.tensor_0") && containing("000000.tensor_1"));
  const Result compared = shell.run({"compare", "mine.toml", "--attention", "softmax", "--attention",
                                     "linear", "--steps", "2", "--threads", "1"});
  CAPTURE(compared.err);
  CHECK(compared.code == 0);
}
