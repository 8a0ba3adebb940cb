// Reproductions that train: budgets and signals, curves on file, verdicts with their error, averages, and the
// figures in a short form.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <set>
#include <sstream>

#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/experiments/reproduction.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/metrics_log.h"

using namespace heed;

namespace {

/// Short expressions for a small model: a step takes some milliseconds.
const std::vector<std::string> small{"--num-examples", "300", "--validation", "20", "--test-size",     "52",
                                     "--max-length",   "48",  "--data.below", "48", "--data.shortest", "8",
                                     "--depth",        "3",   "--arguments",  "6",  "--operators",     "0.5",
                                     "--batch-size",   "4",   "--threads",    "1"};

std::vector<std::string> listops(const std::string& rows, const std::vector<std::string>& more) {
  return with(with({"reproduce", "fast-table1", "--rows", rows}, small), more);
}

/// Expressions whose making alone takes longer than a budget of one second.
std::vector<std::string> slow_to_make(const std::string& rows) {
  return {"reproduce",   "fast-table1", "--rows",    rows, "--num-examples", "150000", "--validation", "4",
          "--test-size", "4",           "--steps",   "60", "--batch-size",   "1",      "--d-model",    "8",
          "--d-ff",      "8",           "--threads", "1"};
}

std::vector<std::string> lines_of(const std::string& words) {
  std::istringstream in(words);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// The rows of a curve: its numbers, NaN where there is none.
std::vector<std::vector<double>> numbers_of(const std::string& csv) {
  std::vector<std::vector<double>> out;
  for (const std::string& line : lines_of(csv)) {
    if (line.starts_with('#') || line.starts_with("step,")) continue;
    std::vector<double> row;
    std::istringstream in(line + ",");
    for (std::string cell; std::getline(in, cell, ',');) row.push_back(cell.empty() ? NAN : std::stod(cell));
    out.push_back(row);
  }
  return out;
}

Path only_run(const Path& folder) {
  const std::vector<Path> names = io::list(folder);
  REQUIRE(names.size() == 1);
  return folder / names[0];
}

}  // namespace

TEST_CASE("reproduce: a budget saves and stops, a signal too, and the curve goes on over all of them") {
  const Shell shell;
  const auto words = [&](const std::vector<std::string>& more) {
    return listops("Vanilla/ListOps", with({"--steps", "10000", "--validate-every", "1000"}, more));
  };
  const Path folder = shell.scratch / "runs" / "reproduce-fast-table1";
  const Result first = shell.run(words({"--budget", "1s"}));
  CAPTURE(first.err, first.out);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.err, containing("the budget is spent, everything is saved: 0 of 1 runs are done") &&
                            containing("heed reproduce fast-table1 --rows Vanilla/ListOps") &&
                            containing("--steps 10000") && containing("--budget 1s\n"));
  const Path run = only_run(folder / "runs");
  CHECK_FALSE(io::exists(run / "scores.json"));
  // Ctrl-C, once the run has gone on.
  const int64_t before = list_checkpoints(run).empty() ? 0 : list_checkpoints(run).back();
  const pid_t child = shell.start(words({}));
  for (int i = 0; i < 600; ++i) {
    ::usleep(50000);
    if (!list_checkpoints(run).empty() && list_checkpoints(run).back() > before) break;
  }
  ::kill(child, SIGINT);
  const Result second = shell.end(child);
  CAPTURE(second.err);
  REQUIRE(second.code == 130);
  CHECK_THAT(second.err, containing(": resumed") && containing("stopped, and saved: 0 of 1 runs are done"));
  CHECK_THAT(second.out,
             containing("Vanilla/ListOps") && containing("seed 1 at step ") && containing(" of 10,000"));
  const Path curve = folder / "results" / "fast-table1-Vanilla-ListOps-s1.csv";
  const std::vector<std::vector<double>> half = numbers_of(io::read(curve));
  REQUIRE_FALSE(half.empty());
  CHECK(half.back()[0] < 10000);
  CHECK(io::exists(folder / "results" / "fast-table1-ListOps-loss-seconds.svg"));
  // To its end, then nothing is left to do.
  const Result third = shell.run(words({}));
  CAPTURE(third.err);
  REQUIRE(third.code == 0);
  CHECK_THAT(third.err, containing(": resumed"));
  const std::string csv = io::read(curve);
  const std::vector<std::vector<double>> all = numbers_of(csv);
  CHECK(all.size() > half.size());
  double step = 0, seconds = 0, validations = 0;
  for (const std::vector<double>& row : all) {
    REQUIRE(row.size() == 5);
    CHECK(row[0] == step + all[0][0]);  // every logged step once, over three sessions
    CHECK(row[1] >= seconds);
    CHECK(std::isfinite(row[2]));
    step = row[0];
    seconds = row[1];
    validations += std::isfinite(row[4]) ? 1 : 0;
  }
  CHECK(step == 10000);
  CHECK(validations == 10);
  for (size_t i = 0; i < half.size(); ++i) CHECK(all[i][1] == half[i][1]);  // pauses count for nothing
  for (const char* part :
       {"# command: heed reproduce fast-table1 --rows Vanilla/ListOps ", "# attention: softmax\n",
        "# recipe: lra-listops-skyformer\n", "# seed: 1\n", "train.max_steps 10000 (recipe: 50000)",
        "# commit: ", "# machine: ", "# date: 20", "step,seconds,train_loss,valid_loss,valid_accuracy\n"})
    CHECK_THAT(csv, containing(part));
  const std::string scored = io::read(run / "scores.json");
  CHECK_THAT(shell.run(words({"--budget", "1h"})).err, containing(": trained already"));
  CHECK(io::read(run / "scores.json") == scored);
}

TEST_CASE("reproduce: --page runs nothing and shows what has begun and what is open") {
  const Shell shell;
  const std::vector<std::string> settings{"--steps", "10000", "--validate-every", "1000", "--quiet"};
  REQUIRE(shell.run(with(listops("Vanilla/ListOps", settings), {"--budget", "1s"})).code == 0);
  const Path folder = shell.scratch / "runs" / "reproduce-fast-table1";
  const std::vector<int64_t> checkpoints = list_checkpoints(only_run(folder / "runs"));
  const Result shown = shell.run(with(listops("Vanilla/ListOps", settings), {"--page"}));
  CAPTURE(shown.err, shown.out);
  REQUIRE(shown.code == 0);
  CHECK(list_checkpoints(only_run(folder / "runs")) == checkpoints);
  CHECK_FALSE(io::exists(folder / "estimates"));
  CHECK_THAT(io::read(folder / "results" / "fast-table1.md"),
             containing("\n| Vanilla | begun, step ") && containing(" of 10,000, ") &&
                 containing(" left (38.37) | open (61.95) |"));
  const Result refused = shell.run({"reproduce", "fast-figure3", "--page"});
  CHECK(refused.code == static_cast<int>(Fault::usage));
  CHECK_THAT(refused.err, containing("--page") && containing("fast-figure3 trains nothing"));
}

TEST_CASE("reproduce: a budget that is over before the first step leaves a run that can be resumed") {
  const Shell shell;
  const Result stopped = shell.run(with(slow_to_make("Vanilla/ListOps"), {"--budget", "1s"}));
  CAPTURE(stopped.err);
  REQUIRE(stopped.code == 0);
  CHECK_THAT(stopped.err, containing("0 of 1 runs are done"));
  const Path run = only_run(shell.scratch / "runs" / "reproduce-fast-table1" / "runs");
  CHECK(io::exists(run / "config.toml"));
  const std::vector<int64_t> steps = list_checkpoints(run);
  const int64_t more = (steps.empty() ? 0 : steps.back()) + 1;
  const Result resumed = shell.run({"resume", run.string(), "--steps", std::to_string(more)});
  CAPTURE(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(io::exists(run / "scores.json"));
}

TEST_CASE("reproduce: what is done is on the page though an earlier row is not") {
  const Shell shell;
  const Result later = shell.run(slow_to_make("Linear/ListOps"));
  CAPTURE(later.err);
  REQUIRE(later.code == 0);
  const Result both = shell.run(with(slow_to_make("Vanilla/ListOps,Linear/ListOps"), {"--budget", "1s"}));
  CAPTURE(both.err, both.out);
  REQUIRE(both.code == 0);
  CHECK_THAT(both.err, containing("1 of 2 runs are done"));
  const std::vector<std::string> lines = lines_of(both.out);
  const auto row = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("Linear/ListOps") != std::string::npos;
  });
  REQUIRE(lines.end() - row > 2);
  CHECK_THAT(row[0], !containing("tested"));  // notes have lines of their own, which fit 80 columns
  CHECK_THAT(unwrapped(both.out), containing("tested at step 60"));
  for (const std::string& line : lines) CHECK((line.size() <= 80 || !line.starts_with("    ")));
}

TEST_CASE("reproduce: a row has its error, its baseline, both validations and what is not the recipe's") {
  const Shell shell;
  const Result result = shell.run(
      listops("Fastmax1/ListOps,Vanilla/ListOps", {"--steps", "6", "--validate-every", "2", "--quiet"}));
  CAPTURE(result.err, result.out);
  REQUIRE(result.code == 0);
  CHECK_THAT(unwrapped(result.out),
             containing(" of 52 ") && containing("majority ") && containing("tested at step ") &&
                 containing(" validation accuracy") && containing("changed: ") &&
                 containing("train.max_steps 6 (recipe: 50000)") && !containing("attention.encoder"));
  CHECK_THAT(result.out, containing("Fastmax1/average") && containing("57.618                  -"));
  const Path folder = shell.scratch / "runs" / "reproduce-fast-table1";
  const std::vector<std::string> csv = lines_of(io::read(folder / "reproduce.csv"));
  REQUIRE(csv.size() == 5);
  CHECK_THAT(csv[1], containing("Vanilla/ListOps,38.37,") && containing(",52,"));
  for (const Path& name : io::list(folder / "runs"))
    CHECK_THAT(io::read(folder / "runs" / name / "scores.json"), containing("\"examples\": 52"));
  const std::string page = io::read(folder / "results" / "fast-table1.md");
  CHECK_THAT(page, containing("# fast-table1\n") && containing("| Vanilla/ListOps | 38.37 | ") &&
                       !containing("/average") &&
                       containing("](fast-table1-ListOps-valid_accuracy-seconds.svg)") &&
                       containing("](fast-table1-ListOps-loss-steps.svg)"));
  for (const std::string& line : lines_of(page)) {
    if (!line.starts_with('|')) CHECK(line.size() <= 124);  // ± is two bytes
  }
  // Elsewhere, as maintainers keep them.
  const Result kept = shell.run(
      listops("Vanilla/ListOps", {"--steps", "6", "--validate-every", "2", "--quiet", "--results", "kept"}));
  CHECK(kept.code == 0);
  CHECK(io::exists(shell.scratch / "kept" / "fast-table1-Vanilla-ListOps-s1.csv"));
  CHECK(io::exists(shell.scratch / "kept" / "fast-table1.md"));
}

TEST_CASE("reproduce: variables of settings do not reach the trainings, whose plans have all settings") {
  const Shell shell;
  ::setenv("HEED_TRAIN_SEED", "7", 1);
  ::setenv("HEED_ATTENTION_ENCODER", "linear", 1);
  const Result result = shell.run(
      listops("Fastmax1/ListOps", {"--seeds", "2", "--steps", "2", "--validate-every", "2", "--quiet"}));
  ::unsetenv("HEED_TRAIN_SEED");
  ::unsetenv("HEED_ATTENTION_ENCODER");
  CAPTURE(result.err, result.out);
  REQUIRE(result.code == 0);
  std::string seeds;
  const Path runs = shell.scratch / "runs" / "reproduce-fast-table1" / "runs";
  for (const Path& name : io::list(runs)) {
    const std::string config = io::read(runs / name / "config.toml");
    CHECK_THAT(config, containing("encoder = \"fastmax:p=1\""));
    for (const char* seed : {"7", "8"}) {
      if (config.find(std::string("\nseed = ") + seed + " ") != std::string::npos) seeds += seed;
    }
  }
  CHECK(seeds == "78");
}

TEST_CASE("reproduce: runs of another machine are on the page by their curves on file") {
  const Shell shell;
  const auto words = [](const std::string& row, const std::string& out) {
    return listops(row + "/ListOps",
                   {"--steps", "6", "--validate-every", "2", "--quiet", "--out", out, "--results", "kept"});
  };
  const Result first = shell.run(words("Vanilla", "here"));
  CAPTURE(first.err, first.out);
  REQUIRE(first.code == 0);
  const auto row_of = [&](const std::string& name) {
    for (const std::string& line : lines_of(io::read(shell.scratch / "kept" / "fast-table1.md"))) {
      if (line.starts_with("| " + name)) return line;
    }
    return std::string();
  };
  const std::string vanilla = row_of("Vanilla/ListOps");
  REQUIRE_THAT(vanilla, containing(" of 52 "));
  CHECK(row_of("Fastmax1/ListOps").empty());
  // No run of Vanilla in that folder: its row is from the file.
  const Result second = shell.run(words("Fastmax1", "there"));
  CAPTURE(second.err, second.out);
  REQUIRE(second.code == 0);
  CHECK(row_of("Vanilla/ListOps") == vanilla);
  CHECK_THAT(row_of("Fastmax1/ListOps"), containing(" of 52 "));
  std::string page = io::read(shell.scratch / "kept" / "fast-table1.md");
  CHECK_THAT(unwrapped(page, "  "), containing("- Vanilla/ListOps: changed: ") &&
                                        containing("tested at step ") &&
                                        containing("train.max_steps 6 (recipe: 50000)"));
  CHECK_THAT(page, containing("<details><summary>All settings of the recipe of Vanilla/ListOps</summary>"));
  CHECK_THAT(io::read(shell.scratch / "kept" / "fast-table1-ListOps-loss-steps.svg"),
             containing("training loss over steps: Vanilla, Fastmax1"));
  // Whose machine is on the page, once for both or in each row's note.
  CHECK_THAT(page, containing("All runs:\n\n- heed: ") && containing("\n- machine: "));
  const Path curve = shell.scratch / "kept" / "fast-table1-Vanilla-ListOps-s1.csv";
  std::string elsewhere = io::read(curve);
  const size_t machine = elsewhere.find("# machine: ") + std::string("# machine: ").size();
  elsewhere.replace(machine, elsewhere.find('\n', machine) - machine, "elsewhere-1");
  io::write(curve, elsewhere);
  REQUIRE(shell.run(words("Fastmax1", "there")).code == 0);
  page = io::read(shell.scratch / "kept" / "fast-table1.md");
  CHECK_THAT(page, containing("elsewhere-1") && !containing("- machine: "));
  // A file that is damaged is named before anything trains.
  const size_t scores = elsewhere.find("# scores: ");
  REQUIRE(scores != std::string::npos);
  elsewhere.replace(scores, elsewhere.find('\n', scores) - scores, "# scores: accuracy");
  io::write(shell.scratch / "kept" / "fast-table1-Linear-ListOps-s1.csv", elsewhere);
  const Result third = shell.run(words("Linear", "there"));
  CHECK(third.code == static_cast<int>(Fault::data));
  CHECK_THAT(third.err,
             containing("fast-table1-Linear-ListOps-s1.csv:") &&
                 containing(": 'accuracy' in 'scores': it must be NAME=NUMBER, such as accuracy=0.35. "
                            "Remove or restore the file."));
  CHECK(io::list(shell.scratch / "there" / "reproduce-fast-table1" / "runs").size() == 1);
}

TEST_CASE("reproduce: a run of other settings leaves the curve of a finished one on file as it is") {
  const Shell shell;
  const auto words = [](const std::string& steps) {
    return listops("Vanilla/ListOps", {"--steps", steps, "--validate-every", "2", "--results", "kept"});
  };
  REQUIRE(shell.run(words("6")).code == 0);
  const Path curve = shell.scratch / "kept" / "fast-table1-Vanilla-ListOps-s1.csv";
  const std::string finished = io::read(curve);
  const Result second = shell.run(words("4"));
  CAPTURE(second.err, second.out);
  REQUIRE(second.code == 0);
  CHECK(io::read(curve) == finished);
  const std::string why =
      "changed: on file train.max_steps 6 (recipe: 50000), here train.max_steps 4 (recipe: 50000)";
  CHECK_THAT(second.err, containing("fast-table1-Vanilla-ListOps-s1.csv has a run of other settings") &&
                             containing(why) && containing("another --results folder or remove the file"));
  CHECK_THAT(unwrapped(second.out),
             containing("tested at step ") &&
                 containing("fast-table1-Vanilla-ListOps-s1.csv is left out (" + why + ")"));
}

TEST_CASE("reproduce: accuracy over speed is drawn from the runs of the table that has them") {
  const Shell shell;
  const std::vector<std::string> more{"--steps", "3", "--quiet"};
  REQUIRE(shell.run(listops("Fastmax1/ListOps", more)).code == 0);
  const Path runs = shell.scratch / "runs" / "reproduce-fast-table1" / "runs";
  const Path run = only_run(runs);
  const std::string scored = io::read(run / "manifest.json");
  std::vector<std::string> words = listops("Fastmax1/ListOps", more);
  words[1] = "fast-figure5";
  const Result result = shell.run(words);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(only_run(runs) == run);
  CHECK(io::read(run / "manifest.json") == scored);  // not trained again
  const Path results = shell.scratch / "runs" / "reproduce-fast-figure5" / "results";
  CHECK_THAT(io::read(results / "fast-figure5-ListOps-bubbles.svg"), containing(">Fastmax1<"));
  CHECK_FALSE(io::exists(results / "fast-figure5-average-bubbles.svg"));  // one column of five is no average
  CHECK_THAT(io::read(results / "fast-figure5.md"), containing("](fast-figure5-ListOps-bubbles.svg)"));
}

TEST_CASE("reproduce: kinds of dropout are rows of their own, each with its rate") {
  const Shell shell;
  const Result result = shell.run({"reproduce",      "fast-figure2",
                                   "--steps",        "2",
                                   "--num-examples", "40",
                                   "--validation",   "10",
                                   "--test-size",    "10",
                                   "--batch-size",   "4",
                                   "--data.side",    "8",
                                   "--max-length",   "64",
                                   "--threads",      "1",
                                   "--limit",        "100000",
                                   "--quiet"});
  CAPTURE(result.err, result.out);
  REQUIRE(result.code == 0);
  const Path folder = shell.scratch / "runs" / "reproduce-fast-figure2";
  std::set<std::string> kinds;
  for (const Path& name : io::list(folder / "runs")) {
    const std::string settings = io::read(folder / "runs" / name / "config.toml");
    for (const std::string& line : lines_of(settings)) {
      if (line.starts_with("attention_dropout") || line.starts_with("encoder = "))
        kinds.insert(line.substr(0, line.find('#')));
    }
  }
  CHECK(io::list(folder / "runs").size() == 7);
  CHECK(kinds.size() == 3 + 4);  // rates 0, 0.1 and 0.3; the default and three kinds
  for (const char* row : {"none", "quadratic-0-3", "standard-0-1", "1d-0-3"})
    CHECK(io::exists(folder / "results" / text("fast-figure2-", row, "-Image-s1.csv")));
  CHECK_THAT(io::read(folder / "results" / "fast-figure2-Image-loss-steps.svg"),
             containing("quadratic-0.1, quadratic-0.3, standard-0.1"));
}

TEST_CASE("reproduce: maps of trained models stand side by side") {
  const Shell shell;
  const Result result = shell.run({"reproduce",      "fast-figure4",
                                   "--steps",        "2",
                                   "--layers",       "1",
                                   "--d-model",      "16",
                                   "--heads",        "2",
                                   "--d-ff",         "16",
                                   "--batch-size",   "4",
                                   "--num-examples", "2000",
                                   "--threads",      "1",
                                   "--limit",        "100000",
                                   "--quiet"});
  CAPTURE(result.err, result.out);
  REQUIRE(result.code == 0);
  const Path results = shell.scratch / "runs" / "reproduce-fast-figure4" / "results";
  for (const char* column : {"MNIST", "Shakespeare"}) {
    const std::string svg = io::read(results / text("fast-figure4-", column, "-maps.svg"));
    CHECK_THAT(svg, containing(">Vanilla 0<") && containing(">Fastmax2 0<") && containing(">Fastmax1 0<") &&
                        containing("head 1"));
  }
  CHECK_THAT(io::read(results / "fast-figure4.md"),
             containing("](fast-figure4-Shakespeare-maps.svg)") &&
                 containing("\nValues: losses of the test split in nats.\n"));
}

TEST_CASE("reproduce: speeds begin with a plan, name what is not the recipe's, and are measured once") {
  const Shell shell;
  std::vector<std::string> words = listops("ListOps", {"--d-model", "8", "--d-ff", "8"});
  words[1] = "fast-table2";
  const Result first = shell.run(words);
  CAPTURE(first.err, first.out);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.err, containing("plan        3 cells to measure; page in ") &&
                            containing("1 of 3: Vanilla/ListOps\n") &&
                            containing("2 of 3: Fastmax2/ListOps, about ") && containing(" left\n"));
  CHECK_THAT(unwrapped(first.out),
             containing(" steps/s here, 11.6 in the paper") && containing("train.batch_size 4 (recipe: 32)"));
  const Path csv = shell.scratch / "runs" / "reproduce-fast-table2" / "reproduce.csv";
  const std::string measured = io::read(csv);
  CHECK_THAT(io::read(shell.scratch / "runs" / "reproduce-fast-table2" / "results" / "fast-table2.md"),
             containing("Made by `heed reproduce fast-table2 ") && containing("\n- commit: ") &&
                 containing("\n- machine: ") && containing("\n- date: 20"));
  CHECK_THAT(shell.run(words).err, containing("3 of 3: Fastmax1/ListOps: measured already\n"));
  CHECK(io::read(csv) == measured);
  // Another number of threads is another measurement.
  std::vector<std::string> more = words;
  *(std::find(more.begin(), more.end(), "--threads") + 1) = "2";
  CHECK_THAT(shell.run(more).err, !containing("measured already"));
  CHECK_THAT(shell.run(words).err, containing("1 of 3: Vanilla/ListOps: measured already\n"));
}

TEST_CASE("reproduce: time over length is drawn masked and unmasked from one measurement") {
  const Shell shell;
  const Result result = shell.run({"reproduce", "fast-figure3", "--rows", "D=32,D=32-masked", "--longest",
                                   "64", "--threads", "1", "--quiet"});
  CAPTURE(result.err, result.out);
  REQUIRE(result.code == 0);
  const Path folder = shell.scratch / "runs" / "reproduce-fast-figure3";
  CHECK(io::list(folder / "lengths").size() == 2);  // one a row
  for (const char* name : {"fast-figure3-D-32.svg", "fast-figure3-D-32-masked.svg"}) {
    const std::string svg = io::read(folder / "results" / name);
    CHECK_THAT(svg, containing("softmax") && containing("Fastmax1") && containing("Fastmax2"));
    int64_t drawn = 0;
    for (size_t at = svg.find("<path fill=\"none\""); at != std::string::npos;
         at = svg.find("<path fill=\"none\"", at + 1)) {
      ++drawn;
      const std::string line = svg.substr(at, svg.find('>', at) - at);
      CHECK(std::count(line.begin(), line.end(), 'L') == 1);  // 32 and 64 tokens, of one mask
    }
    CHECK(drawn == 3);
  }
  CHECK_THAT(io::read(folder / "results" / "fast-figure3-D-32-masked.svg"), containing("masked"));
}

TEST_CASE("reproduce: a budget, a length and settings that do not fit are refused by name") {
  const Shell shell;
  check_refused(shell, {"reproduce", "fast-table1", "--budget", "2 hours"}, 2,
                {"--budget = '2 hours'", "90s, 30m, 2h or 1h30m"});
  check_refused(shell, {"compare", "recall", "--attention", "softmax", "--budget", "0s"}, 2,
                {"--budget = '0s'"});
  check_refused(shell, {"reproduce", "fast-table1", "--longest", "512"}, 2,
                {"--longest is for tables of lengths"});
  check_refused(shell, {"reproduce", "fast-figure3", "--longest", "1"}, 2, {"--longest = 1"});
  check_refused(shell, {"reproduce", "fast-figure3", "--steps", "5"}, 2, {"--steps 5", "trains nothing"});
  check_refused(shell, {"reproduce", "fast-table1", "--attention", "linear"}, 2,
                {"option --attention is unknown"});
  check_refused(shell, {"reproduce", "fast-table1", "--set", "attention.encoder=linear"}, 2,
                {"--set attention.encoder=linear does not go with a table"});
  check_refused(shell, {"bench", "attention", "linear", "--from", "2"}, 2, {"--from = 2", "16 to"});
}

TEST_CASE("reproduction: averages are of whole rows, with the error of their columns") {
  PublishedTable table{.name = "t", .about = "", .source = "", .tolerance = 1, .columns = {}, .rows = {}};
  table.columns = {{.name = "A", .preset = "", .real_data = ""},
                   {.name = "B", .preset = "", .real_data = ""}};
  table.rows = {{"x", "softmax", {40, 60}, ""}, {"y", "linear", {30, NAN}, ""}, {"z", "li", {1, 2}, ""}};
  const auto cell = [](const char* name, double value, double error, Verdict verdict) {
    return CellResult{.name = name, .ours = spread_of({value}), .error = error, .verdict = verdict};
  };
  std::vector<CellResult> cells{cell("x/A", 41, 3, Verdict::reproduced), cell("x/B", 62, 4, Verdict::better),
                                cell("y/B", 30, 1, Verdict::reproduced)};
  const std::vector<CellResult> averages = averages_of(table, cells);
  REQUIRE(averages.size() == 2);  // z is not among the cells
  CHECK(averages[0].name == "x/average");
  CHECK(averages[0].paper == 50);
  CHECK(averages[0].ours.mean == 51.5);
  CHECK(averages[0].error == 2.5);
  CHECK(averages[0].verdict == Verdict::reproduced);
  CHECK(ours_text(averages[0]) == "51.5 \u00b1 2.5");
  CHECK(averages[1].ours.count == 0);
  CHECK(ours_text(averages[1]) == "-");
  cells[1].verdict = Verdict::unknown;  // on other data
  CHECK(averages_of(table, cells)[0].verdict == Verdict::unknown);
  table.measure = Measure::loss;
  CHECK(averages_of(table, cells).empty());
}
