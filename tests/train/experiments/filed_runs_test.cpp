// Curves on file: which of them a run may replace, and which of them count in a cell.
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/source_paths.h"
#include "heed/train/experiments/reproduction_parts.h"

using namespace heed;

namespace {

/// A cell of fast-table1 whose runs have no folder but the metrics that a test writes.
struct FiledCell {
  explicit FiledCell(int64_t seeds) {
    options.runs.folder = scratch / "all";
    for (int64_t seed = 1; seed <= seeds; ++seed)
      work.plans.push_back({.label = "softmax", .seed = seed, .name = text("run-", seed), .plan = ""});
  }

  /// Writes the curve of seed `seed` with this loss at this step, and with an accuracy where the run has
  /// ended.
  void write(int64_t seed, double loss, std::optional<double> accuracy, int64_t step = 1) const {
    const PlannedRun plan{.label = "softmax", .seed = seed, .name = text("run-", seed), .plan = ""};
    const Path run = folder_of(plan, options.runs.folder);
    io::make_directories(run);
    io::write(run / "metrics.jsonl", text("{\"step\": ", step, ", \"loss\": ", loss, ", \"seconds\": 1}\n"));
    ComparedRun ended{.label = "softmax", .folder = "", .failure = ""};
    if (accuracy) ended.scores = {{"accuracy", *accuracy}};
    write_curve(table, options, work, plan, accuracy ? &ended : nullptr);
  }

  std::string on_file(int64_t seed) const { return io::read(curve_file(table, options, work, seed)); }

  /// This cell with what is on file, after these runs have ended.
  PlannedCell with_filed(const EndedRuns& ended) const {
    std::vector<PlannedCell> all{work};
    add_filed_runs(table, options, ended, all);
    return all.at(0);
  }

  const Scratch scratch;
  const PublishedTable& table = published_table("fast-table1");
  ReproductionOptions options;
  PlannedCell work{&table.rows[0], &table.columns[0], 0, true, true, {}, {}, {.name = "Vanilla/ListOps"}};
};

}  // namespace

TEST_CASE("filed runs: a finished run is replaced by a finished one of the same settings alone") {
  FiledCell cell(1);
  cell.write(1, 3, {});
  cell.write(1, 2.5, {});
  CHECK_THAT(cell.on_file(1), containing("\n1,1.00,2.5,"));  // neither has scores
  cell.work.result.changed = "train.max_steps 6 (recipe: 50000)";
  cell.write(1, 2, 0.5);
  const std::string finished = cell.on_file(1);
  CHECK_THAT(finished, containing("# scores: accuracy=0.5\n"));
  cell.write(1, 1.5, {});
  CHECK(cell.on_file(1) == finished);
  cell.work.result.changed = "";
  cell.write(1, 1.25, 0.75);
  CHECK(cell.on_file(1) == finished);
  cell.work.result.changed = "train.max_steps 6 (recipe: 50000)";
  cell.write(1, 1, 0.75);
  CHECK_THAT(cell.on_file(1), containing("# scores: accuracy=0.75\n"));
  cell.options.data["ListOps"] = "/elsewhere";
  cell.write(1, 0.5, 0.25);
  CHECK_THAT(cell.on_file(1), containing("# scores: accuracy=0.75\n"));
}

TEST_CASE(
    "filed runs: a curve without scores shows how far its run has come, but for seeds that are planned") {
  FiledCell cell(1);
  cell.write(1, 2.5, {});
  CHECK(cell.with_filed({}).unfinished_on_file.empty());
  cell.work.plans.clear();
  const PlannedCell shown = cell.with_filed({});
  CHECK(shown.finished_on_file.empty());
  REQUIRE(shown.unfinished_on_file.size() == 1);
  CHECK(shown.unfinished_on_file[0].run.step == 1);
  const CellResult shown_cell = judged_cell(cell.table, cell.options, shown, {}, nullptr);
  CHECK(shown_cell.ours.count == 0);
  CHECK_THAT(shown_cell.remark, containing("seed 1 at step 1 of "));
  CHECK(shown_cell.has_begun);
}

TEST_CASE(
    "filed runs: an unfinished curve gives way to a finished one, or to one of the same that has come as "
    "far") {
  FiledCell cell(1);
  cell.write(1, 2.5, {}, 100);
  cell.write(1, 2, {}, 50);
  CHECK_THAT(cell.on_file(1), containing("\n100,1.00,2.5,"));
  cell.work.result.changed = "train.max_steps 200 (recipe: 50000)";
  cell.write(1, 2, {}, 200);
  CHECK_THAT(cell.on_file(1), containing("\n100,1.00,2.5,"));
  cell.write(1, 2, 0.5, 10);
  CHECK_THAT(cell.on_file(1), containing("# scores: accuracy=0.5\n"));
}

TEST_CASE("filed runs: without plans a finished run decides the settings, whatever began before it") {
  FiledCell cell(2);
  cell.work.result.changed = "train.precision tf32 (recipe: f32)";
  cell.write(1, 2.5, {});
  cell.work.result.changed = "";
  cell.write(2, 2, 0.5);
  cell.work.plans.clear();
  const PlannedCell shown = cell.with_filed({});
  CHECK(shown.unfinished_on_file.empty());
  REQUIRE(shown.finished_on_file.size() == 1);
  CHECK(shown.finished_on_file[0].run.seed == 2);
  CHECK_THAT(shown.result.ignored_curves, containing("s1.csv is left out"));
}

TEST_CASE("filed runs: a run on file counts until the same seed has ended here with scores") {
  FiledCell cell(2);
  for (const int64_t seed : {1, 2}) cell.write(seed, 2, 0.5);
  CHECK(cell.with_filed({}).finished_on_file.size() == 2);  // planned, and not yet run
  ComparedRun run{.label = "softmax", .folder = "", .failure = "it fell over"};
  CHECK(cell.with_filed({{"run-1", run}}).finished_on_file.size() == 2);
  run.failure.clear();
  const PlannedCell shown = cell.with_filed({{"run-1", run}});
  REQUIRE(shown.finished_on_file.size() == 1);
  CHECK(shown.finished_on_file[0].run.seed == 2);
  CHECK(shown.result.ignored_curves.empty());
}

TEST_CASE("filed runs: a row's own value that an earlier version called the recipe's is no other setting") {
  const auto facts = [](const char* of) {
    return Facts{{"changed", text("train.max_steps 9 (", of, ": 500), model.dropout 0 (recipe: 0.1)")}};
  };
  CHECK(different_facts(facts("recipe"), facts("row")).empty());
  CHECK(different_facts({{"changed", "nothing"}}, facts("row")) ==
        "changed: on file nothing, here train.max_steps 9 (recipe: 500), model.dropout 0 (recipe: 0.1)");
}

TEST_CASE("filed runs: seeds of other settings or data are no runs of the cell, which names them") {
  FiledCell cell(3);
  cell.write(1, 2, 0.5);
  cell.work.result.changed = "train.max_steps 6 (recipe: 50000), train.batch_size 4 (recipe: 32)";
  cell.write(2, 2, 0.25);
  cell.work.result.changed = "";
  cell.options.data["ListOps"] = "/elsewhere";
  cell.write(3, 2, 0.125);
  cell.options.data.clear();
  const auto check = [&](const PlannedCell& shown) {
    REQUIRE(shown.finished_on_file.size() == 1);
    CHECK(shown.finished_on_file[0].run.seed == 1);
    CHECK(
        shown.result.ignored_curves ==
        "fast-table1-Vanilla-ListOps-s2.csv is left out (changed: on file train.max_steps 6 (recipe: "
        "50000), train.batch_size 4 (recipe: 32), here nothing); fast-table1-Vanilla-ListOps-s3.csv is left "
        "out (data: on file the files of --data, here generated by the program)");
    CHECK(judged_cell(cell.table, cell.options, shown, {}, nullptr).ours.mean == 50);
  };
  check(cell.with_filed({}));
  cell.work.plans.clear();  // plans of another call are gone: the first seed decides
  check(cell.with_filed({}));
  CHECK_THAT(note_text(cell.with_filed({}).result), containing("fast-table1-Vanilla-ListOps-s3.csv"));
}

TEST_CASE("filed runs: what all runs share stands once on the page, what they do not in their notes") {
  FiledCell cell(0);
  const auto put = [&](int64_t seed, const std::string& commit, const std::string& date) {
    cell.work.finished_on_file.push_back(
        {{.label = "", .folder = "", .failure = "", .seed = seed},
         {{"heed", "0.1.0"}, {"commit", commit}, {"machine", "M"}, {"date", date}}});
  };
  put(1, "aaa", "2026-11-24T19:05:48Z");
  Origins origins = origins_of({cell.table, cell.options, {cell.work}, {}});
  CHECK(origins.shared == "- heed: 0.1.0\n- commit: aaa\n- machine: M\n- date: 2026-11-24\n");
  CHECK(origins.by_cell.empty());
  PlannedCell other = cell.work;
  other.result.name = "Linear/ListOps";
  put(2, "bbb", "2026-11-24T20:00:00Z");
  origins = origins_of({cell.table, cell.options, {cell.work, other}, {}});
  CHECK(origins.shared == "- heed: 0.1.0\n- machine: M\n- date: 2026-11-24\n");
  CHECK(origins.by_cell == std::map<std::string, std::string>{{"Linear/ListOps", "commit aaa"},
                                                              {"Vanilla/ListOps", "commit aaa and bbb"}});
  other.finished_on_file[0].facts = {{"heed", "0.2.0"}};
  origins = origins_of({cell.table, cell.options, {other, cell.work}, {}});
  CHECK(origins.shared.empty());
  CHECK(origins.by_cell["Linear/ListOps"] == "heed 0.2.0, commit unknown, machine unknown, date unknown");
}

TEST_CASE("filed runs: a page begins with all cells of its table, done, begun, failed and open") {
  FiledCell cell(1);
  cell.work.result.paper = 38.37;
  cell.write(1, 2, 0.375);
  FiledCell begun(0);
  begun.write(1, 2, std::nullopt, 10);
  const PlannedCell filed = begun.with_filed({});
  REQUIRE(filed.unfinished_on_file.size() == 1);
  const auto cell_of = [&](size_t row, size_t column) {
    return PlannedCell::of(cell.table, cell.table.rows[row], column);
  };
  PlannedCell fastmax2 = cell_of(5, 0), fastmax1 = cell_of(6, 0), text_cell = cell_of(0, 1),
              failed = cell_of(1, 0), both = cell_of(4, 0);
  fastmax2.unfinished_on_file = fastmax1.unfinished_on_file = both.unfinished_on_file =
      filed.unfinished_on_file;
  fastmax2.unfinished_on_file[0].run.steps = both.unfinished_on_file[0].run.steps = 50000;
  fastmax1.unfinished_on_file[0].run.steps = 0;  // a curve that does not say it
  text_cell.result.estimate = 3723;
  failed.result.code = 4;
  std::vector<PlannedCell> all{cell.with_filed({}), fastmax2, fastmax1, text_cell, failed, both};
  all[5].finished_on_file = all[0].finished_on_file;
  Reproduction result;
  for (const PlannedCell& planned : all)
    result.cells.push_back(judged_cell(cell.table, cell.options, planned, {}, nullptr));
  write_page({cell.table, cell.options, all, {}}, result);
  const std::string page = io::read(cell.options.results_folder() / "fast-table1.md");
  CHECK_THAT(page,
             containing("\n|  | ListOps | Text | Retrieval | Image | Pathfinder |\n") &&
                 containing("\n| Vanilla | 37.5 (38.37), reproduced | open, 1:02:03 (61.95) |") &&
                 containing("\n| Informer | failed (36.95) | open (63.60) |") &&
                 containing("\n| Linear | 37.5, begun, step 10 of 50,000, 1:23:19 left (16.13), better |") &&
                 containing("\n| Fastmax2 | begun, step 10 of 50,000, 1:23:19 left (37.40) |") &&
                 containing("\n| Fastmax1 | begun, step 10 (37.20) | open (63.25) |"));
  const std::string csv = io::read(cell.options.results_folder() / "fast-table1-cells.csv");
  CHECK_THAT(csv,
             containing("row,column,state,paper,ours,deviation,seeds,error,verdict,step,steps,seconds_left\n"
                        "Vanilla,ListOps,done,38.37,37.5,0,1,0,reproduced,0,0,0\n"
                        "Vanilla,Text,open,61.95,,,0,,,0,0,3723\n"
                        "Vanilla,Retrieval,open,80.69,,,0,,,0,0,\n") &&
                 containing("\nFastmax2,ListOps,begun,37.4,,,0,,,10,50000,4999\n") &&
                 containing("\nFastmax1,ListOps,begun,37.2,,,0,,,10,0,\n"));
}

TEST_CASE("filed runs: facts with numbers are read strictly, with file, line and value") {
  const Scratch scratch;
  const std::string names = "step,seconds,train_loss,valid_loss\n10,1.00,2.5,\n";
  const auto read = [&](const std::string& facts) {
    return read_filed_run(scratch.file("r.csv", facts + names), "softmax", 1).run;
  };
  const ComparedRun run = read(
      "# scores: accuracy=0.35, loss=1.5\n# tested: step=5, of=10, examples=2000, steps_per_second=3.5\n"
      "# baselines: majority=0.17\n");
  CHECK(run.scores.at(0).second == 0.35);
  CHECK(run.step == 5);
  CHECK(run.steps == 10);
  CHECK(run.examples == 2000);
  CHECK(run.steps_per_second == 3.5);
  CHECK(read("# steps: 40\n").steps == 40);
  const auto refused = [&](const std::string& facts, const std::string& value, const std::string& why) {
    CAPTURE(facts);
    CHECK_THROWS_WITH(read(facts), containing("r.csv:1: '" + value + "' in") && containing(why));
    CHECK(fault_of([&] { read(facts); }) == Fault::data);
  };
  for (const char* bad : {"0x1p-1", "0.35abc", "nan", "inf", "", "+1", "1e999"})
    refused(text("# scores: accuracy=", bad, "\n"), text("accuracy=", bad), "NAME=NUMBER");
  refused("# scores: accuracy=0,35\n", "accuracy=0,35", "NAME=NUMBER");
  refused("# scores: =0.35\n", "=0.35", "NAME=NUMBER");
  refused("# scores: 0.35\n", "0.35", "NAME=NUMBER");
  refused("# scores: accuracy=35\n", "accuracy=35", "from 0 to 1");
  refused("# scores: loss=1, loss=2\n", "loss=2", "once");
  refused("# scores: accuracy=0.35\n", "accuracy=0.35", "'tested'");
  for (const char* bad : {"1e30", "-1", "0.5"})
    refused(text("# tested: step=", bad, "\n"), text("step=", detail::number(std::stod(bad))),
            "whole number");
  refused("# steps: many\n", "many", "whole number");
  refused("# tested: step=11, of=10\n# scores: accuracy=0.35\n", "step=11", "10 steps");
  refused("# seed: 2\n", "2", "name says 1");
  refused("# scores: " + std::string(5000, 'x') + "\n", std::string(40, 'x') + "...", "NAME=NUMBER");
}

TEST_CASE("filed runs: every curve of docs/results is read") {
  int64_t count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(Path(source_folder()) / "docs/results")) {
    const std::string name = entry.path().stem().string();
    const size_t seed = name.rfind("-s");
    if (entry.path().extension() != ".csv" || seed == name.npos) continue;
    const auto number = parsed_integer(name.substr(seed + 2));
    if (!number) continue;
    CAPTURE(name);
    CHECK_NOTHROW(read_filed_run(entry.path(), "softmax", *number));
    ++count;
  }
  CHECK(count >= 60);
}

TEST_CASE("filed runs: what a file says is text on the page, whatever it holds") {
  CHECK(markdown_escaped("AMD EPYC, 2 threads, train.max_steps 6 (recipe: 50000)") ==
        "AMD EPYC, 2 threads, train.max_steps 6 (recipe: 50000)");
  CHECK(markdown_escaped("<script>a & b</script>") == "&lt;script&gt;a &amp; b&lt;/script&gt;");
  CHECK(markdown_escaped("[x](javascript:alert(1))") == "\\[x\\](javascript:alert(1))");
  CHECK(markdown_escaped("`a` | *b* _c_ \\ ~d~") == "\\`a\\` \\| \\*b\\* \\_c\\_ \\\\ \\~d\\~");
  CHECK(markdown_escaped("a\nb\x1B") == "a b\\u001b");
  FiledCell cell(1);
  const std::string evil = "<script>alert(1)</script> [x](javascript:alert(1))";
  cell.write(1, 2, 0.5);
  std::string filed = cell.on_file(1);
  filed.insert(0, "# machine: " + evil + "\n# commit: " + evil + "\n");
  filed.insert(filed.find("# points"), "# baselines: " + evil + "=0.1\n");
  io::write(curve_file(cell.table, cell.options, cell.work, 1), filed);
  const PlannedCell shown = cell.with_filed({});
  REQUIRE(shown.finished_on_file.size() == 1);
  Reproduction result;
  result.cells = {judged_cell(cell.table, cell.options, shown, {}, nullptr)};
  write_page({cell.table, cell.options, {shown}, {}}, result);
  const std::string page = io::read(cell.options.results_folder() / "fast-table1.md");
  CHECK_THAT(page,
             containing("- machine: &lt;script&gt;alert(1)&lt;/script&gt; \\[x\\](javascript:alert(1))"));
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find(" [x](") == std::string::npos);
}
