// Comparisons: parsing of specs, names of plans, means over seeds, charts, and the command.
#include "heed/train/experiments/comparison.h"

#include <sys/stat.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "heed/core/io/hash.h"
#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

ComparedRun run_of(const std::string& label, int64_t seed, double accuracy, double speed,
                   std::vector<MetricSeries> metrics = {}) {
  return {.label = label,
          .folder = "runs/" + label,
          .failure = "",
          .seed = seed,
          .scores = {{"loss", 1 - accuracy}, {"accuracy", accuracy}},
          .parameters = 100,
          .flops = 2e9,
          .steps_per_second = speed,
          .memory = 64.0 * 1048576,
          .seconds = 3,
          .metrics = std::move(metrics)};
}

const std::string one_seed = "one seed each, so nothing here says how far scores vary by chance";

Comparison of_four() {
  ComparedRun failed{.label = "band", .folder = "", .failure = "no, said \"it\"", .seed = 1};
  return compare_runs("four", {run_of("softmax", 1, 0.75, 10), run_of("linear", 1, 0.5, 30),
                               run_of("softmax", 2, 0.25, 20), failed});
}

const std::vector<std::string> tiny{"--d-model", "16", "--heads",      "2",  "--d-ff",    "16",
                                    "--layers",  "1",  "--batch-size", "16", "--threads", "1"};

std::vector<std::string> compare(const std::vector<std::string>& more) {
  std::vector<std::string> out{"compare", "recall"};
  out.insert(out.end(), tiny.begin(), tiny.end());
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

int64_t count_of(const std::string& part, const std::string& words) {
  int64_t count = 0;
  for (size_t at = words.find(part); at != std::string::npos; at = words.find(part, at + 1)) ++count;
  return count;
}

/// How often a run was begun, and when its weights were last written.
std::string state_of(const Path& run) {
  const Json manifest = parse_json(io::read(run / "manifest.json"), "manifest");
  return manifest.at("started").text() + io::read(run / "scores.json") + io::read(run / "metrics.jsonl");
}

}  // namespace

TEST_CASE("comparison: a comma begins a spec unless an option follows it") {
  using List = std::vector<std::string>;
  CHECK(split_specs("softmax") == List{"softmax"});
  CHECK(split_specs("softmax,fastmax:p=1,linear") == List{"softmax", "fastmax:p=1", "linear"});
  CHECK(split_specs("linear:features=elu,scale=2,window:left=2,right=2") ==
        List{"linear:features=elu,scale=2", "window:left=2,right=2"});
  CHECK(split_specs("(gla:rank=4*3,softmax),linear,(softmax*2,linear)") ==
        List{"gla:rank=4*3,softmax", "linear", "softmax*2,linear"});
  CHECK_THROWS_WITH(split_specs("gla*3,softmax"),
                    containing("'gla*3' is not one attention") && containing("'(gla*3,softmax),linear'"));
  CHECK_THROWS_WITH(split_specs("(gla,softmax"), containing("parentheses"));
  CHECK(split_specs("softmax,,linear") == List{"softmax", "", "linear"});  // refused later, as '' by its name
}

TEST_CASE("comparison: plans have one name exactly when every setting is the same") {
  const auto name = [](const std::vector<std::pair<std::string, std::string>>& settings) {
    Config config = make_config("recall");
    for (const auto& [key, value] : settings) config.set(key, value, "");
    return plan_run(std::move(config), "a:b=1").name;
  };
  const std::string plain = name({});
  CHECK(plain.starts_with("a-b-1-seed"));
  CHECK(name({}) == plain);
  CHECK(name({{"train.learning_rate", "0.123"}}) != plain);
  CHECK(name({{"data.items", "7"}}) != plain);
  CHECK(name({{"attention.encoder", "linear"}}) != plain);
  CHECK(name({{"train.seed", "77"}}) != plain);
}

TEST_CASE("comparison: means and sample deviations over the seeds of a label") {
  const Comparison four = of_four();
  CHECK(four.score == "accuracy");
  CHECK(four.higher_is_better);
  REQUIRE(four.rows.size() == 3);
  CHECK(four.rows[0].label == "softmax");
  CHECK(four.rows[0].score.count == 2);
  CHECK(four.rows[0].score.mean == Approx(0.5));
  CHECK(four.rows[0].score.deviation == Approx(std::sqrt(0.125)));
  CHECK(four.rows[0].steps_per_second == Approx(15));
  CHECK(four.rows[1].score.deviation == 0);
  CHECK(four.rows[2].score.count == 0);
  const std::string table = comparison_text(four);
  CHECK_THAT(table, containing("softmax") && containing("0.50 ± 0.35") && containing("no, said \"it\""));
}

TEST_CASE("comparison: one line of CSV a run, quotes doubled") {
  const std::string csv = comparison_csv(of_four());
  CHECK(
      csv.starts_with("label,seed,loss,accuracy,steps_per_second,peak_bytes,parameters,flops_a_step,seconds,"
                      "validation_seconds,run,"));
  CHECK_THAT(csv,
             containing("\"softmax\",1,0.25,0.75,10,67108864,100,2e+09,3,0,\"runs/softmax\",,\"\",\"\"\n"));
  CHECK_THAT(csv, containing("\"band\",1,,,,,,,,,,\"no, said \"\"it\"\"\",,\n"));
}

TEST_CASE("comparison: baselines stand below the accuracies, and in each line of the CSV") {
  ComparedRun one = run_of("softmax", 1, 0.75, 10), two = run_of("linear", 1, 0.5, 30),
              again = run_of("softmax", 2, 0.5, 10);
  const ComparedRun failed{.label = "band", .folder = "", .failure = "no", .seed = 1};
  using Lines = std::vector<std::string>;
  CHECK(comparison_notes(compare_runs("none", {one, two})) == Lines{one_seed});
  CHECK_THAT(comparison_csv(compare_runs("none", {one})), !containing("baselines"));
  one.baselines = two.baselines = again.baselines = "majority 0.172, root operator 0.257";
  const Comparison same = compare_runs("same", {one, two, again, failed});
  CHECK(comparison_notes(same).back() == "baselines: majority 0.172, root operator 0.257");
  CHECK(comparison_text(same).ends_with("\nbaselines: majority 0.172, root operator 0.257\n"));
  CHECK_THAT(comparison_html(same), containing(">baselines: majority 0.172, root operator 0.257<"));
  const std::string csv = comparison_csv(same);
  CHECK(csv.starts_with("label,seed,loss,accuracy,baselines,steps_per_second,"));
  CHECK_THAT(csv, containing("\"linear\",1,0.5,0.5,\"majority 0.172, root operator 0.257\",30,"));
  CHECK_THAT(csv, containing("\"band\",1,,,\"\",,,,,,,,\"no\",,\n"));
  // Baselines of several tasks name their task.
  two.baselines = "majority 0.5";
  CHECK(comparison_notes(compare_runs("tasks", {one, two})) ==
        Lines{one_seed, "baselines of softmax: majority 0.172, root operator 0.257",
              "baselines of linear: majority 0.5"});
  two.baselines = "";
  CHECK(comparison_notes(compare_runs("tasks", {one, two})) ==
        Lines{one_seed, "baselines of softmax: majority 0.172, root operator 0.257"});
}

TEST_CASE("comparison: what a spreadsheet would run stands in the CSV as text") {
  ComparedRun one = run_of("=1+1", 1, 0.75, 10);
  one.scores.push_back({"@sum(a1)", -0.5});
  one.baselines = "+x";
  const ComparedRun failed{.label = "-a", .folder = "", .failure = "\t=2", .seed = -1};
  const std::string csv = comparison_csv(compare_runs("formulas", {one, failed}));
  CHECK(csv.starts_with("label,seed,loss,accuracy,\"'@sum(a1)\",baselines,"));
  CHECK_THAT(csv, containing("\n\"'=1+1\",1,0.25,0.75,-0.5,\"'+x\",10,"));
  CHECK_THAT(csv, containing("\n\"'-a\",-1,,,,\"\",,,,,,,,\"'\t=2\",,\n"));
}

TEST_CASE("comparison: speeds of another machine, instruction set, threads or program are marked") {
  const auto measured = [](const std::string& label, const SessionTraits& traits) {
    ComparedRun run = run_of(label, 1, 0.5, 10);
    run.measured_on = traits;
    return run;
  };
  const SessionTraits here{{"heed", "0.1.0 (source a)"}, {"instruction set", "avx512"}, {"threads", "2"}};
  const Comparison same = compare_runs("same", {measured("a", here), measured("b", here)});
  CHECK_THAT(comparison_notes(same)[1], containing("avx512") && !containing("*"));  // all of one machine
  CHECK_THAT(comparison_text(same), !containing("*"));
  const ComparedRun failed{.label = "f", .folder = "", .failure = "no"};
  const Comparison mixed = compare_runs(
      "mixed",
      {failed, measured("a", here),
       measured("b", {{"heed", "0.2.0 (source b)"}, {"instruction set", "avx2"}, {"threads", "8"}}),
       measured("c", {{"heed", "0.1.0 (source a)"}, {"instruction set", "avx512"}, {"threads", "4"}})});
  const std::string words =
      "heed 0.2.0 (source b) instead of 0.1.0 (source a); instruction set avx2 instead of avx512; threads 8 "
      "instead of 2";
  CHECK(comparison_notes(mixed) ==
        std::vector<std::string>{
            one_seed,
            "* steps/s, memory and seconds of b were not measured as those of the first run were: " + words,
            "* steps/s, memory and seconds of c were not measured as those of the first run were: threads 4 "
            "instead of 2"});
  CHECK_THAT(comparison_text(mixed),
             containing("10*") && containing("heed 0.2.0 (source b)") && containing("f          no\n"));
  CHECK_THAT(comparison_html(mixed), containing("<td>10*</td>") && containing(words) && containing(">b*<"));
  CHECK_THAT(comparison_csv(mixed),
             containing(",\"heed 0.1.0 (source a), instruction set avx512, threads 2\",\"\"\n") &&
                 containing(",\"" + words + "\"\n"));
}

TEST_CASE("comparison: a speed is of the session that took the steps") {
  const Scratch scratch;
  const Path run = scratch / "run";
  io::make_directories(run);
  io::write(run / "scores.json", R"({"step": 3, "of": 4, "accuracy": 0.5})");
  io::write(run / "manifest.json",
            R"({"seed": 1, "parameters": 10, "estimate": {"flops_a_step": 2e9}, "heed": "0.1.0", "threads": 1,
                "took": {"steps": 4, "seconds_of_steps": 2, "memory_bytes": 1e6},
                "sessions": [{"heed": "0.1.0", "threads": 1, "took": {}}, {"heed": "0.1.0", "threads": 8, "took": {}},
                             {"heed": "0.1.0", "threads": 3}]})");
  const ComparedRun read = read_compared(run, "run");
  CHECK(read.steps_per_second == 2);
  CHECK_THAT(to_string(read.measured_on), containing("threads 8"));
}

TEST_CASE("comparison: runs on different data are not compared without a word") {
  ComparedRun one = run_of("a", 1, 0.75, 10), two = run_of("b", 1, 0.5, 30), three = run_of("c", 1, 0.5, 30);
  one.data = two.data = three.data = "text 1234abcd";
  CHECK(comparison_notes(compare_runs("same", {one, two, three})) == std::vector<std::string>{one_seed});
  two.data = "text 99999999";
  const std::vector<std::string> notes = comparison_notes(compare_runs("two", {one, two, three}));
  REQUIRE(notes.size() == 4);
  CHECK_THAT(notes[1], containing("not all runs had the same data"));
  CHECK(notes[2] == "data of a, c: text 1234abcd");
  CHECK(notes[3] == "data of b: text 99999999");
  two.data = "";
  CHECK(comparison_notes(compare_runs("none", {one, two})).back() ==
        "data of b: none that the manifest names");
}

TEST_CASE(
    "comparison: a run that does not say what it took has no speed, and what must be said is asked for by "
    "file") {
  const Scratch scratch;
  const Path run = scratch / "run";
  io::make_directories(run);
  io::write(run / "scores.json", R"({"step": 3, "of": 4, "accuracy": 0.5})");
  Json manifest =
      parse_json(R"({"seed": 1, "parameters": 10, "estimate": {"flops_a_step": 2e9}})", "manifest");
  io::write(run / "manifest.json", manifest.dump());
  const ComparedRun untold = read_compared(run, "untold");
  CHECK(untold.steps_per_second == 0);
  CHECK(untold.memory == 0);
  const Comparison both = compare_runs("both", {untold, run_of("softmax", 1, 0.75, 10)});
  CHECK(comparison_bubbles(both).bubbles.size() == 1);
  CHECK_THAT(comparison_text(both), containing("untold") && containing("  -  "));
  CHECK_THAT(comparison_csv(both), containing("\"untold\",1,0.5,,,,10,2e+09,0,0,"));
  CHECK_THAT(comparison_html(both), containing("<td>-</td><td>-</td><td>0.0</td>"));
  io::write(run / "manifest.json", R"({"seed": 1})");
  CHECK_THROWS_WITH(read_compared(run, "run"), containing("manifest.json: ") && containing("'parameters'"));
  CHECK(fault_of([&] { read_compared(run, "run"); }) == Fault::data);
}

TEST_CASE("comparison: curves are means at the steps that all seeds have, over steps and seconds") {
  const std::vector<MetricSeries> one{{"valid_accuracy", {2, 4, 6}, {0.1, 0.3, 0.5}},
                                      {"seconds", {1, 3, 6}, {1, 3, 9}}},
      other{{"valid_accuracy", {2, 6}, {0.3, 0.7}}, {"seconds", {2, 6}, {4, 12}}};
  const Comparison two =
      compare_runs("two", {run_of("softmax", 1, 0.5, 1, one), run_of("softmax", 2, 0.5, 1, other)});
  const Chart steps = comparison_chart(two, "valid_accuracy", false);
  REQUIRE(steps.series.size() == 1);
  CHECK(steps.title == "validation accuracy over steps");
  CHECK(steps.series[0].x == std::vector<double>{2, 6});
  CHECK(steps.series[0].y == std::vector<double>{0.2, 0.6});
  CHECK(steps.series[0].low == std::vector<double>{0.1, 0.5});
  CHECK(steps.series[0].high == std::vector<double>{0.3, 0.7});
  CHECK_THAT(chart_svg(steps), containing("fill-opacity"));
  const Chart seconds = comparison_chart(two, "valid_accuracy", true);
  CHECK(seconds.x_label == "seconds");
  CHECK(seconds.series[0].x == std::vector<double>{3, 10.5});  // step 2 of the first lies at two seconds
  CHECK(comparison_charts(two).size() == 2);                   // the training loss was not logged
  CHECK_THAT(comparison_html(two), containing("Speed against accuracy") && containing("softmax"));
}

TEST_CASE("bubbles: areas are memory, places speed and score, bad bubbles are refused by name") {
  BubbleChart chart{.title = "a & b", .x_label = "x", .y_label = "y", .area_label = "z", .bubbles = {}};
  CHECK_THROWS_WITH(bubbles_svg(chart), containing("no bubble"));
  chart.bubbles = {{"small", 1, 0.5, 1}, {"large", 100, 0.9, 4}};
  const std::string svg = bubbles_svg(chart);
  CHECK_THAT(svg, containing("a &amp; b") && containing("r=\"36.7\"") && containing("r=\"18.3\""));
  CHECK(svg.find(">large<") < svg.find(">small<"));  // small ones lie on top
  chart.bubbles.push_back({"still", 0, 1, 1});
  CHECK_THROWS_WITH(bubbles_svg(chart), containing("'still' is at (0, 1)"));
}

TEST_CASE("bubbles: names of bubbles that lie together do not, and there are two ticks at least") {
  BubbleChart chart{.title = "t", .x_label = "x", .y_label = "y", .area_label = "z", .bubbles = {}};
  for (int i = 0; i < 9; ++i)
    chart.bubbles.push_back({text("attention:option=", i), 31 + 0.1 * i, 0.5 + 0.001 * (i % 3), 2.0 + i});
  const std::string svg = bubbles_svg(chart);
  const auto number = [&](size_t text_at, const char* key) {
    return std::stod(svg.substr(svg.find(key, text_at) + std::strlen(key)));
  };
  std::vector<std::pair<double, double>> names;
  int ticks = 0;
  for (size_t at = svg.find("<text"); at != std::string::npos; at = svg.find("<text", at + 1)) {
    const double x = number(at, "x=\""), y = number(at, " y=\"");
    const std::string words = svg.substr(svg.find('>', at) + 1, 17);
    if (words == "attention:option=") names.emplace_back(x, y);
    if (y == 400 && words.find("<") < words.size()) ++ticks;  // below the axis
  }
  CHECK(ticks >= 2);
  REQUIRE(names.size() == 9);
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      CAPTURE(names[i], names[j]);
      const bool apart = std::fabs(names[i].first - names[j].first) > 110 ||
                         std::fabs(names[i].second - names[j].second) > 13;
      CHECK(apart);
    }
  }
}

TEST_CASE("compare: trains each, says which is which, and never trains one twice") {
  const Shell shell;
  const Result first =
      shell.run(compare({"--attention", "softmax,fastmax:p=1", "--seeds", "2", "--steps", "3", "--quiet"}));
  CAPTURE(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, containing("softmax") && containing("fastmax:p=1") && containing("compare.html"));
  const Path folder = shell.scratch / "runs" / "compare-recall";
  for (const char* name : {"compare.html", "compare.csv", "bubbles.svg", "valid_accuracy-seconds.svg"})
    CHECK(io::exists(folder / name));
  // What was changed in all, and what in one of them; all settings are folded.
  CHECK_THAT(io::read(folder / "compare.html"),
             containing("train.max_steps</th><td>3</td>") && containing("<td class=\"list\">all</td>") &&
                 containing("<td class=\"list\">fastmax:p=1</td>") &&
                 containing("<details class=\"folded\">\n<summary>All settings of softmax"));
  const std::vector<Path> runs = io::list(folder / "runs");
  REQUIRE(runs.size() == 4);
  std::vector<std::string> before;
  for (const Path& run : runs) before.push_back(state_of(folder / "runs" / run));
  // One more attention: the four that are there stay as they are. One that cannot be is a row with a reason.
  const Result more = shell.run(compare(
      {"--attention", "softmax", "--attention", "fastmax:p=1,linear", "--seeds", "2", "--steps", "3"}));
  CHECK(more.code == 0);
  CHECK_THAT(more.err, containing("softmax, seed 2: trained already") && containing("linear, seed"));
  // Each run is seen to its end, once, with what it scored.
  CHECK(count_of("step 3/3", more.err) == 2);
  CHECK(count_of("  test        accuracy 0.", more.err) == 2);
  CHECK(io::list(folder / "runs").size() == 6);
  for (size_t i = 0; i < runs.size(); ++i) CHECK(state_of(folder / "runs" / runs[i]) == before[i]);
  const Result overlay = shell.run({"compare", (folder / "runs" / runs[0]).string(),
                                    (folder / "runs" / runs[1]).string(), "--name", "two"});
  CHECK(overlay.code == 0);
  CHECK(io::exists(shell.scratch / "runs" / "two" / "compare.html"));
  // What has the place of a page is neither waited for nor written through.
  const Path victim = shell.scratch.file("victim", "keep");
  io::remove_all(folder / "compare.csv");
  std::filesystem::create_symlink(victim, folder / "compare.csv");
  const std::vector<std::string> again =
      compare({"--attention", "softmax,fastmax:p=1", "--seeds", "2", "--steps", "3", "--quiet"});
  const Result linked = shell.run(again);
  CHECK(linked.code == static_cast<int>(Fault::file));
  CHECK_THAT(linked.err, containing("compare.csv is a link"));
  CHECK(io::read(victim) == "keep");
  io::remove_all(folder / "compare.csv");
  io::remove_all(folder / "compare.html");
  REQUIRE(::mkfifo((folder / "compare.html").c_str(), 0600) == 0);
  const Result piped = shell.run(again);
  CHECK(piped.code == static_cast<int>(Fault::file));
  CHECK_THAT(piped.err, containing("compare.html is a pipe"));
  // Scores of two tasks are never side by side.
  std::vector<std::string> words{"train", "lm", "--name", "verse", "--steps", "1", "--num-examples", "20000"};
  words.insert(words.end(), tiny.begin(), tiny.end());
  REQUIRE(shell.run(words).code == 0);
  CHECK_THAT(io::read(shell.scratch / "runs" / "verse" / "report.html"),
             containing("<dt>bits per byte</dt>") && containing("<dt>word perplexity</dt>"));
  const Result mixed = shell.run({"compare", (folder / "runs" / runs[0]).string(), "runs/verse"});
  CHECK(mixed.code == 2);
  CHECK_THAT(mixed.err, containing("runs/verse is of the task lm, but") && containing("of recall"));
}

TEST_CASE("compare: a stop is handed on and the same command goes on, a run that fails is a row") {
  const Shell shell;
  const auto words = compare({"--attention", "softmax", "--steps", "600", "--validate-every", "20"});
  const pid_t child = shell.start(words);
  const Path runs = shell.scratch / "runs" / "compare-recall" / "runs";
  Path run;
  for (int i = 0; i < 600 && run.empty(); ++i) {
    ::usleep(50000);
    if (!io::exists(runs)) continue;
    for (const Path& name : io::list(runs)) {
      if (!name.native().starts_with('.') && !list_checkpoints(runs / name).empty()) run = runs / name;
    }
  }
  REQUIRE_FALSE(run.empty());
  ::kill(child, SIGTERM);
  const Result stopped = shell.end(child);
  CHECK(stopped.code == 143);
  CHECK_THAT(stopped.err, containing("run the same command again to continue"));
  const int64_t kept = list_checkpoints(run).back();
  CHECK(kept > 0);
  CHECK_FALSE(io::exists(run / "scores.json"));
  const Result again = shell.run(words);
  CAPTURE(again.err);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, containing(": resumed"));
  CHECK(io::list(runs).size() == 1);
  CHECK(io::exists(run / "scores.json"));
  int64_t before = 0;  // each step stands in the log once, from the first session to the second
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    if (one.name != "loss") continue;
    CHECK(one.steps.front() < kept);
    for (const int64_t step : one.steps) {
      CHECK(step > before);
      before = step;
    }
  }
  CHECK(before == 600);
  // A limit that no run can keep: a row with the reason, and its code.
  const Result failed =
      shell.run(compare({"--attention", "softmax", "--steps", "5", "--memory", "1M", "--name", "f"}));
  CHECK(failed.code == static_cast<int>(Fault::memory));
  CHECK_THAT(failed.out, containing("memory"));
}

TEST_CASE("compare: a budget saves, and the same command goes on") {
  const Shell shell;
  const auto words = [](const std::string& time) {
    return compare({"--attention", "softmax", "--steps", "1000000", "--budget", time});
  };
  const Result first = shell.run(words("2s"));
  CAPTURE(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.err,
             containing("the budget is spent, everything is saved; run the same command again to continue"));
  const Path runs = shell.scratch / "runs" / "compare-recall" / "runs";
  REQUIRE(io::list(runs).size() == 1);
  const Path run = runs / io::list(runs)[0];
  REQUIRE_FALSE(list_checkpoints(run).empty());
  const int64_t before = list_checkpoints(run).back();
  const Result second = shell.run(words("3s"));
  CHECK(second.code == 0);
  CHECK_THAT(second.err, containing(": resumed"));
  CHECK(list_checkpoints(run).back() > before);
}

TEST_CASE("compare: wrong use is named") {
  const Shell shell;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& part) {
    const Result result = shell.run(words);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, containing(part));
  };
  refused({"compare", "recall"}, "give --attention a,b,c");
  refused({"compare", "recall", "mnist", "--attention", "softmax"}, "takes one preset");
  refused({"compare", "recal", "--attention", "softmax"}, "Did you mean 'recall'?");
  refused(compare({"--attention", "softmax,linaer"}), "Did you mean 'linear'?");
  refused(compare({"--attention", "softmax,,linear"}), "attention ''");
  refused(compare({"--attention", "softmax", "--seeds", "0"}), "--seeds = 0. It must be 1 to 100.");
  const Result none = shell.run({"compare", "."});
  CHECK(none.code == 5);
  CHECK_THAT(none.err, containing("config.toml"));
}

TEST_CASE("compare: an attention that cannot be trained is told before the first training") {
  const Shell shell;
  const auto refused = [&](const std::vector<std::string>& words, const std::vector<std::string>& parts) {
    check_refused(shell, with({"compare"}, with(words, {"--steps", "2", "--threads", "1"})), 2, parts);
    CHECK_FALSE(io::exists(shell.scratch / "runs"));
  };
  refused({"recall", "--attention", "softmax,linear,delta"},
          {"attention 'delta' looks back only", "Add --causal true"});
  refused({"recall", "--attention", "softmax,nystromformer", "--causal", "true"},
          {"attention 'nystromformer' cannot look back only", "data.causal = true"});
  refused({"recall", "--attention", "softmax,performer", "--position", "alibi"},
          {"compare: performer cannot be trained, so nothing was: ", "takes no bias by position"});
  refused({"lm", "--attention", "softmax,softmax;9=linear"}, {"compare: softmax;9=linear cannot be trained"});
}

TEST_CASE("compare: plans are checked with their own settings, a run that has begun is not") {
  const Scratch scratch;
  const auto plan = [](const std::string& attention, const std::string& position) {
    Config config = make_config("recall");
    config.set("attention.encoder", attention, "");
    config.set("model.position", position, "");
    return plan_run(std::move(config), attention);
  };
  const PlannedRun good = plan("softmax", "alibi"), bad = plan("performer", "alibi"),
                   other = plan("performer", "none");
  ModelCheck check;
  check(good);
  CHECK_THROWS_WITH(check(bad), containing("takes no bias by position"));
  check(other);
  CHECK_THROWS_WITH(check_models({good, bad}, {.folder = scratch.path(), .quiet = true}),
                    containing("performer cannot be trained"));
  check_models({bad}, {.folder = scratch.path(), .quiet = true});  // alone: its training says it
  io::make_directories(folder_of(bad, scratch.path()));
  io::write(folder_of(bad, scratch.path()) / "config.toml", "");
  check_models({good, bad, other}, {.folder = scratch.path(), .quiet = true});
}

TEST_CASE("compare: the check of models leaves half of a budget to the trainings") {
  const Scratch scratch;
  const auto plan = [](const std::string& attention) {
    Config config = make_config("recall");
    config.set("attention.encoder", attention, "");
    return plan_run(std::move(config), attention);
  };
  const PlannedRun good = plan("softmax");
  PlannedRun bad = plan("performer");
  bad.plan += "\n[no_such_part]\nx = 1\n";
  Progress progress;
  progress.quiet = true;
  const auto failures = [&](TimeBudget budget) {
    size_t count = 0;
    build_models({&good, &bad}, {.folder = scratch.path(), .budget = budget}, progress,
                 [&](size_t, const Error&) { ++count; });
    return count;
  };
  CHECK(failures({}) == 1);
  CHECK(failures(TimeBudget(1000)) == 1);
  CHECK(failures(TimeBudget(0)) == 0);
  CHECK(TimeBudget(0).part(0.5).spent());
  const TimeBudget half = TimeBudget(0.02).part(0.5);
  std::this_thread::sleep_for(std::chrono::milliseconds(12));
  CHECK(half.spent());
  CHECK_FALSE(TimeBudget(1000).part(0.5).spent());
  CHECK_FALSE(TimeBudget().part(0.5).spent());
}
