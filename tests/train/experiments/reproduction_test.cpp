// Reproductions: the file of published tables, verdicts, selection of cells, and the command.
#include "heed/train/experiments/reproduction.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heed/attention/spec.h"
#include "heed/attention/variant.h"
#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/tasks/task.h"

using namespace heed;

TEST_CASE("published: every table is whole, and its presets and attentions are there") {
  REQUIRE(published().size() >= 11);
  Rng rng(1);
  for (const PublishedTable& table : published()) {
    CAPTURE(table.name);
    CHECK_FALSE(table.source.empty());
    CHECK_FALSE(table.about.empty());
    for (const PublishedColumn& column : table.columns) {
      CAPTURE(column.name);
      if (table.measure == Measure::crossover) {
        CHECK(column.head_dim > 0);
        continue;
      }
      if (table.measure == Measure::map_distance) {
        CHECK(column.width * column.num_pos <= 16);
        CHECK(column.data.empty() != column.real_data.empty());  // what to give where there is no default
        continue;
      }
      for (const PublishedRow& row : table.rows) {
        CAPTURE(row.name);
        const std::string& spec = row.attention_on(column);
        if (spec.empty()) continue;
        if (table.measure == Measure::swapped || table.measure == Measure::score_gradient) {
          CHECK((column.exponent > 0 || column.tokens > 0 || !column.real_data.empty()));
          CHECK(why_unknown(spec).empty());
          continue;
        }
        Config config = make_config(column.preset);
        for (const auto& [key, value] : column.settings) config.set(key, value, "");
        for (const auto& [key, value] : row.settings) config.set(key, value, "");
        const bool recurrent = config.model.kind == ModelKind::seq2seq;
        config.set(recurrent ? "attention.cross" : "attention.encoder", spec, "");
        CHECK_NOTHROW(config.check());
        if (spec == "none") continue;
        const bool looks_back = !variant_named(parse_spec(spec).name).traits.bidirectional;
        CHECK_NOTHROW(attention_factory(spec)(
            {.d_model = 64, .heads = 2, .causal = looks_back, .max_length = 2048}, rng));
      }
    }
    if (!table.runs_of.empty()) {  // both tables have equal cells, or the runs would not be found
      const PublishedTable& other = published_table(table.runs_of);
      REQUIRE(other.rows.size() == table.rows.size());
      REQUIRE(other.columns.size() == table.columns.size());
      for (size_t i = 0; i < table.rows.size(); ++i) {
        CHECK(other.rows[i].settings == table.rows[i].settings);
        for (size_t j = 0; j < table.columns.size(); ++j) {
          CHECK(other.rows[i].attention_on(other.columns[j]) == table.rows[i].attention_on(table.columns[j]));
          CHECK(other.columns[j].preset == table.columns[j].preset);
          const double ours = table.rows[i].values[j], theirs = other.rows[i].values[j];
          CHECK(((std::isnan(ours) && std::isnan(theirs)) || ours == theirs));
        }
      }
    }
    for (const PublishedRow& row : table.rows) {
      for (const auto& [name, spec] : row.attention_in) {
        CHECK(std::any_of(table.columns.begin(), table.columns.end(),
                          [&, &wanted = name](const PublishedColumn& one) { return one.name == wanted; }));
      }
      CHECK(row.values.size() == table.columns.size());
      if (row.attention.empty()) CHECK_FALSE(row.note.empty());  // why it cannot run
    }
  }
  for (const PublishedRow& row : published_table("lra").rows) {  // the options of its code, not our defaults
    CAPTURE(row.name);
    const bool has_none = row.attention == "softmax" || row.attention == "linear";
    CHECK(has_none != (row.attention.find(':') != std::string::npos));
  }
  CHECK(published_table("fast-table1").rows.back().values[0] == 37.20);
  CHECK_THROWS_WITH(published_table("fast-tabel1"), containing("Did you mean 'fast-table1'?"));
}

TEST_CASE("published: a test set of so many examples has an error of its own") {
  CHECK(two_standard_errors(50, 2500) == Approx(2));
  CHECK(two_standard_errors(37.2, 2000) == Approx(2.1616).epsilon(1e-3));
  CHECK(two_standard_errors(37.2, 0) == 0);
  CHECK(two_standard_errors(NAN, 2000) == 0);
  CHECK(two_standard_errors(100, 2000) == 0);
  const PublishedTable& table = published_table("fast-table1");
  CHECK(verdict_on(table, 40, 38.5, two_standard_errors(38.5, 2000)) == Verdict::reproduced);
  CHECK(verdict_on(table, 40, 38.5, two_standard_errors(38.5, 20000)) == Verdict::below);
}

TEST_CASE("published: an attention that the program lacks is named, not a crash") {
  CHECK(why_unknown("softmax").empty());
  CHECK_THAT(why_unknown("softmux"), containing("softmux"));
  CHECK_THAT(why_unknown("linear:nonsense=1"), containing("nonsense"));
  PublishedTable table{.name = "t", .about = "a", .source = "s", .columns = {}, .rows = {}};
  table.columns = {{.name = "C", .preset = "recall", .real_data = ""}};
  table.rows = {{"Absent", "nosuch:x=1", {50}, ""}};
  const Scratch scratch;
  ReproductionOptions options{.runs = {.folder = scratch / "all", .quiet = true}};
  const Reproduction result = reproduce(table, options);
  CHECK(result.runs == 0);
  CHECK_THAT(result.cells.at(0).remark, containing("not run: ") && containing("nosuch"));
  CHECK(result.cells.at(0).code == 0);
}

TEST_CASE("published: a verdict minds the tolerance, the deviation, and which side is better") {
  const PublishedTable accuracy{
      .name = "a", .about = "", .source = "", .tolerance = 1, .columns = {}, .rows = {}};
  CHECK(verdict_on(accuracy, 40, 40.9, 0) == Verdict::reproduced);
  CHECK(verdict_on(accuracy, 40, 39.1, 0) == Verdict::reproduced);
  CHECK(verdict_on(accuracy, 40, 41.1, 0) == Verdict::better);
  CHECK(verdict_on(accuracy, 40, 38.9, 0) == Verdict::below);
  CHECK(verdict_on(accuracy, 40, 38.9, 1.2) == Verdict::reproduced);
  CHECK(verdict_on(accuracy, NAN, 38.9, 0) == Verdict::unknown);
  PublishedTable loss = accuracy;
  loss.measure = Measure::loss;
  CHECK(verdict_on(loss, 5, 3, 0) == Verdict::better);
  CHECK(verdict_on(loss, 5, 7, 0) == Verdict::below);
  PublishedTable speed = accuracy;
  speed.measure = Measure::steps_per_second;
  speed.tolerance = 0.1;
  CHECK(verdict_on(speed, 8, 7.3, 0) == Verdict::reproduced);
  CHECK(verdict_on(speed, 8, 7.1, 0) == Verdict::below);
  PublishedTable length = speed;
  length.measure = Measure::crossover;
  CHECK(verdict_on(length, 1024, 700, 0) == Verdict::better);
  CHECK(verdict_on(length, 1024, 1200, 0) == Verdict::below);
}

TEST_CASE("reproduction: rows, columns and cells are named in any case of letters") {
  const PublishedRow row{"Fastmax2", "fastmax:p=2", {1}, ""};
  const PublishedColumn column{.name = "ListOps", .preset = "lra-listops", .real_data = ""};
  for (const char* pattern : {"fastmax2", "LISTOPS", "Fastmax2/listops"})
    CHECK(names_cell(pattern, row, column));
  for (const char* pattern : {"fastmax", "Fastmax2/Text", "", "/"})
    CHECK_FALSE(names_cell(pattern, row, column));
}

TEST_CASE("reproduction: the first row of a ratio is asked for with the rows that are named") {
  const ReproductionOptions options{.rows = {"Fastmax1/Image"}, .runs = {.folder = ""}};
  const std::vector<PlannedCell> cells = wanted_cells(published_table("fast-figure6"), options);
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].row->name == "Vanilla");
  for (const PlannedCell& work : cells) CHECK(work.is_requested);  // and not put off by a limit
  for (const PlannedCell& work : wanted_cells(published_table("fast-figure6"), {}))
    CHECK_FALSE(work.is_requested);
}

TEST_CASE("reproduce: speeds are ratios, and without a speed of the first row there is none") {
  const Scratch scratch;
  const PublishedTable& table = published_table("fast-table2");
  ReproductionOptions options{.rows = {"ListOps"}, .runs = {.folder = scratch / "all"}};
  options.runs.quiet = true;
  for (const PlannedCell& work : wanted_cells(table, options)) {  // what an earlier call has measured
    const std::string name = plan_run(config_of(work, options, 0), work.row->attention).name;
    io::make_directories(options.runs.folder / "speeds");
    io::write(options.runs.folder / "speeds" / (name + ".json"),
              work.row->name == "Vanilla" ? "{}\n" : "{\"step_ms\": 10}\n");
  }
  const Reproduction result = reproduce(table, options);
  REQUIRE(result.cells.size() == 3);
  CHECK(result.cells[0].paper == 1);
  CHECK(result.cells[0].code != 0);
  CHECK(result.cells[1].paper == 11.6 / 6.4);
  CHECK(result.cells[1].ours.count == 0);
  CHECK(result.cells[1].verdict == Verdict::unknown);
  CHECK_THAT(result.cells[1].remark,
             containing("100.000 steps/s here, 11.6 in the paper; no speed of Vanilla to compare with"));
  CHECK_THAT(reproduction_text(table, result), !containing("nan"));
}

TEST_CASE("reproduce: a cell that takes too long waits to be asked for, and says how long") {
  const Shell shell;
  const Result result = shell.run({"reproduce", "shakespeare", "--limit", "0", "--threads", "2"});
  CAPTURE(result.err);
  CHECK(result.code == 0);
  CHECK_THAT(result.err, containing("estimate    1 of 2: GPT/CPU") && containing("2 of 2: GPT/GPU"));
  CHECK_THAT(result.out,
             containing("GPT/CPU") && containing("1.88") && containing("to run it: --rows GPT/CPU"));
  CHECK_THAT(result.out, containing("karpathy/nanoGPT"));
  const auto estimated_with = [&](const char* threads) {
    return shell.run({"reproduce", "shakespeare", "--limit", "0", "--threads", threads}).err;
  };
  CHECK_THAT(estimated_with("2"), !containing("estimate "));
  CHECK_THAT(estimated_with("1"), containing("estimate "));
  const Path csv = shell.scratch / "runs" / "reproduce-shakespeare" / "reproduce.csv";
  CHECK_THAT(
      io::read(csv),
      containing("cell,paper,mean,deviation,seeds,error,examples,verdict,remark,validation,changed,setting,"
                 "baselines\n"
                 "GPT/CPU,1.88,,,0,,,,\""));
}

TEST_CASE("reproduce: what a row asks for is no change of the recipe, another value of it is") {
  const Shell shell;
  const auto changed = [&](const std::vector<std::string>& more) {
    const Result result = shell.run(
        with({"reproduce", "nystromformer", "--rows", "Linformer/ListOps", "--steps", "2", "--batch-size",
              "4", "--num-examples", "50", "--validation", "8", "--test-size", "8", "--quiet"},
             more));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    return unwrapped(result.out);
  };
  CHECK_THAT(changed({}), containing("train.max_steps 2 (recipe: 5000)") && !containing("attention_dropout"));
  CHECK_THAT(changed({"--attention-dropout", "0.1"}), containing("model.attention_dropout 0.1 (row: 0)") &&
                                                          containing("train.max_steps 2 (recipe: 5000)"));
}

TEST_CASE(
    "reproduce: data that are not there are refused before anything runs, a run that fails has its code") {
  const Shell shell;
  const Result none =
      shell.run({"reproduce", "fast-table1", "--rows", "Fastmax1/Text", "--data", "Text=/nonexist"});
  CHECK(none.code == 5);
  CHECK_THAT(none.err, containing("/nonexist does not exist"));
  CHECK(none.out.empty());
  CHECK_FALSE(io::exists(shell.scratch / "runs"));
  io::write(shell.scratch / "text", "no verse");  // too short to train on
  const Result failed = shell.run({"reproduce", "shakespeare", "--rows", "GPT/CPU", "--data", "CPU=text"});
  CHECK(failed.code == static_cast<int>(Fault::data));
  CHECK_THAT(failed.out, containing("GPT/CPU") && containing("text"));
  // Where not even the estimate can be made, its code.
  const Result unknown = shell.run({"reproduce", "shakespeare", "--data", "CPU=text", "--limit", "0"});
  CHECK(unknown.code == static_cast<int>(Fault::data));
}

TEST_CASE("reproduce: an estimate is compared with ours of the checkpoint that was scored") {
  const Scratch scratch;
  const Path data = scratch / "verse";
  io::write(data, "verse");
  ReproductionOptions options{
      .rows = {"GPT/CPU"}, .data = {{"CPU", data.string()}}, .runs = {.folder = scratch / "all"}};
  options.runs.quiet = true;
  Config config = make_config("shakespeare-cpu");
  config.set("data.path", data.string(), "");
  const Path run = options.runs.folder / "runs" / plan_run(std::move(config), "softmax").name;
  io::make_directories(run);
  io::write(run / "scores.json", "{\"step\": 20, \"of\": 30, \"loss\": 1.97}");
  io::write(run / "manifest.json",
            "{\"seed\": 1, \"parameters\": 1, \"estimate\": {\"flops_a_step\": 1},"
            "\"baselines\": \"majority 0.1\", \"took\": {\"memory_bytes\": 1}}");
  const auto with_estimate = [&](double estimate) {
    io::write(run / "metrics.jsonl",
              text("{\"step\": 10, \"valid_estimate\": 1}\n{\"step\": 20, \"valid_estimate\": ", estimate,
                   "}\n{\"step\": 30, \"valid_estimate\": 1}\n"));
    return reproduce(published_table("shakespeare"), options).cells.at(0);
  };
  const CellResult near = with_estimate(1.9);
  CHECK(near.ours.mean == 1.9);
  CHECK(near.verdict == Verdict::reproduced);
  CHECK_THAT(near.remark, containing("over all of validation 1.97; nanoGPT's is the mean of 20 random"));
  CHECK(near.baselines == "majority 0.1");
  CHECK(with_estimate(1.92).verdict == Verdict::below);  // by more than the tolerance of 0.03
}

TEST_CASE("reproduction: what a verdict means stands below the cells, where there is one") {
  const PublishedTable& table = published_table("fast-table1");
  Reproduction all;
  all.cells = {{.name = "Vanilla/ListOps"}};
  CHECK(verdict_words(table, all).empty());
  all.cells[0].verdict = Verdict::below;
  CHECK(
      verdict_words(table, all) ==
      "Verdicts: reproduced, where ours is no further from the paper's value than 1 point or its own error "
      "(two standard errors of the test set, or the deviation over seeds), whichever is larger; else better "
      "or below.");
  CHECK_THAT(reproduction_text(table, all), containing("below\n") && containing("Verdicts: "));
}

TEST_CASE("reproduction: baselines stand below the cells, once for those that share them") {
  const PublishedTable& table = published_table("fast-table1");
  Reproduction all;
  std::vector<CellResult>& cells = all.cells;
  cells = {{.name = "Vanilla/ListOps"}, {.name = "Fastmax1/ListOps"}, {.name = "Vanilla/Text"}};
  const std::string none = reproduction_text(table, all);
  CHECK_THAT(none, !containing("baselines"));
  cells[0].baselines = cells[1].baselines = "majority 0.172";
  cells[2].baselines = "length \"alone\" 0.54";
  CHECK(reproduction_text(table, all) ==
        none +
            "baselines of Vanilla/Text: length \"alone\" 0.54\n"
            "baselines of Vanilla/ListOps, Fastmax1/ListOps: majority 0.172\n");
  CHECK(reproduction_csv(all).ends_with(",\"\",\"length \"\"alone\"\" 0.54\"\n"));
}

TEST_CASE("reproduce: crossings are measured once and judged") {
  const Shell shell;
  // The measurement of an earlier call.
  const Path folder = shell.scratch / "runs" / "reproduce-fast-figure3" / "lengths";
  const auto put = [&](const char* name, const char* line) {
    io::make_directories(folder / name);
    io::write(folder / name / "crossovers.csv",
              text("attention,causal,head_dim,forward_from,step_from\n", line, "\n"));
  };
  put("Fastmax2-d32", "\"fastmax:p=2\",0,32,512,800\n\"fastmax:p=2\",1,32,700,900");
  put("Fastmax1-d32", "\"fastmax:p=1\",0,32,0,0\n\"fastmax:p=1\",1,32,0,0");
  const Result result = shell.run({"reproduce", "fast-figure3", "--rows", "D=32", "--quiet"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, containing("1024") && containing("512") && containing("better"));
  CHECK_THAT(result.out, containing("slower than softmax at the longest length measured"));
  CHECK(result.out.find("D=64") == std::string::npos);
}

TEST_CASE("reproduce: damaged files of earlier measurements are named, with the value and what to do") {
  const Scratch scratch;
  const auto remark_of = [&](const char* name, const char* row, const Path& file, const std::string& bytes) {
    const PublishedTable& table = published_table(name);
    ReproductionOptions options{.rows = {row}, .runs = {.folder = scratch / "all"}};
    options.runs.quiet = true;
    io::make_directories((options.runs.folder / file).parent_path());
    io::write(options.runs.folder / file, bytes);
    const Reproduction result = reproduce(table, options);
    CHECK(result.cells.at(0).code == static_cast<int>(Fault::data));
    return result.cells.at(0).remark;
  };
  const std::string names = "attention,causal,head_dim,forward_from,step_from\n";
  const auto crossing = [&](const std::string& bytes) {
    const std::string remark =
        remark_of("fast-figure3", "Fastmax2/D=32", "lengths/Fastmax2-d32/crossovers.csv", bytes);
    CHECK_THAT(remark,
               containing("crossovers.csv: the next call measures it again.") && !containing("internal"));
    return remark;
  };
  for (const char* bad : {"many", "", "5,12", "0x1p9", "nan", "1e999"}) {
    CAPTURE(bad);
    CHECK_THAT(crossing(names + text("\"fastmax:p=2\",0,32,", bad, ",800\n")),
               containing("crossovers.csv:2:"));
  }
  CHECK_THAT(crossing(names + "\"fastmax:p=2\",0,32,-1,800\n"), containing("the length -1"));
  CHECK_THAT(crossing(names), containing("no line is of fastmax:p=2"));
  CHECK_THAT(crossing(""), containing("crossovers.csv:1:1: there is no header"));
  const PublishedTable& speeds = published_table("fast-table2");
  ReproductionOptions options{.rows = {"Vanilla/ListOps"}, .runs = {.folder = scratch / "all"}};
  const PlannedCell work = wanted_cells(speeds, options).at(0);
  const std::string plan = plan_run(config_of(work, options, 0), work.row->attention).name;
  for (const char* bad :
       {"{\"step_ms\": \"10\"}", "{\"step_ms\": null}", "{\"step_ms\": 0}", "{}", "[]", "", "{\"st"}) {
    CAPTURE(bad);
    CHECK_THAT(remark_of("fast-table2", "Vanilla/ListOps", text("speeds/", plan, ".json"), bad),
               containing(plan + ".json: ") && containing("the next call measures it again."));
  }
}

TEST_CASE("reproduce: a crossover is looked for up to twice the published length") {
  const PublishedTable& table = published_table("fast-figure3");
  const PublishedRow& second = table.rows.at(0);
  const PublishedRow& first = table.rows.at(1);
  CHECK(longest_length(table, second, 128) == 2 * 16384);
  CHECK(longest_length(table, second, 32) == 2048);
  CHECK(longest_length(table, first, 128) == 2048);
}

TEST_CASE("reproduce: what was measured with other machine options is kept in another place") {
  const PublishedTable& table = published_table("fast-figure3");
  const PlannedCell work{&table.rows[0], &table.columns[0], 0, true, true, {}, {}, {}};
  ReproductionOptions options;
  CHECK(lengths_folder(work, options).filename() == "Fastmax2-d32");
  options.runs.machine = {"--threads", "2", "--device", "cpu"};
  CHECK(lengths_folder(work, options).filename() == "Fastmax2-d32-threads-2-device-cpu");
  options.max_length = 64;
  CHECK(lengths_folder(work, options).filename() == "Fastmax2-d32-n64-threads-2-device-cpu");
}

TEST_CASE("reproduce: a loss that is never reached is no speedup, and the cell says so") {
  const PublishedTable& table = published_table("fast-figure6");
  ReproductionOptions options;
  options.data[table.columns.at(0).name] = "/given";
  const auto run_with = [](std::vector<double> losses) {
    ComparedRun run{.label = "", .folder = "", .failure = ""};
    run.step = 3;
    run.metrics = {{"loss", {1, 2, 3}, losses},
                   {"seconds", {1, 2, 3}, {10, 20, 30}},
                   {"valid_loss", {3}, {2}},
                   {"valid_accuracy", {3}, {0.25}}};
    return run;
  };
  const auto cell_of = [&](const ComparedRun& run, const ComparedRun* first) {
    PlannedCell work{&table.rows.back(), &table.columns.at(0), 0, true, true, {}, {}, {}};
    work.result = {.name = "row", .paper = 1, .changed = "train.max_steps 3"};
    work.finished_on_file = {{run, {}}};
    return judged_cell(table, options, work, {}, first);
  };
  const ComparedRun base = run_with({2, 1.5, 1});
  const CellResult sooner = cell_of(run_with({1.5, 1, 0.5}), &base);
  CHECK(sooner.ours.mean == 1.5);
  CHECK(sooner.verdict == Verdict::better);
  // Seconds of a validation between logged losses.
  ComparedRun validated = run_with({1.5, 1, 0.5});
  validated.metrics[1] = {"seconds", {1, 2, 3, 4}, {10, 20, 30, 35}};
  CHECK(cell_of(validated, &base).ours.mean == 1.5);
  const CellResult never = cell_of(run_with({2, 1.5, 1.25}), &base);
  CHECK(never.ours.count == 0);
  CHECK(never.verdict == Verdict::below);
  CHECK_THAT(note_text(never), containing("changed: train.max_steps 3; tested at step 3") &&
                                   containing("; the last training loss of Vanilla was never reached"));
  // A run of fewer steps than the recipe's might have reached it later.
  ComparedRun cut_short = run_with({2, 1.5, 1.25});
  cut_short.steps = 3;
  CHECK(cell_of(cut_short, &base).verdict == Verdict::unknown);
  CHECK_THAT(cell_of(cut_short, &base).remark, containing("3 of the recipe's 50,000 steps are too few"));
  ComparedRun late = run_with({3, 2, 1});
  late.metrics[1].values = {20, 40, 60};
  CHECK(cell_of(late, &base).verdict == Verdict::below);
  late.steps = 50000;
  CHECK(cell_of(late, &base).verdict == Verdict::below);
  late.steps = 3;
  CHECK(cell_of(late, &base).ours.mean == 0.5);
  CHECK(cell_of(late, &base).verdict == Verdict::unknown);
  CHECK(std::isnan(table.rows.front().values.at(0)));  // no speedup over itself is published
  const CellResult alone = cell_of(base, nullptr);
  CHECK(alone.ours.count == 0);
  CHECK(alone.verdict == Verdict::unknown);
  CHECK_THAT(alone.remark, containing("no run of Vanilla to compare with"));
}

TEST_CASE("reproduce: wrong use is named, and no name lists the tables") {
  const Shell shell;
  const Result list = shell.run({"reproduce"});
  CHECK(list.code == 0);
  CHECK_THAT(list.out, containing("fast-table1") && containing("shakespeare"));
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), "reproduce");
    const Result result = shell.run(words);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, containing(part));
  };
  refused({"fast-tabel1"}, "Did you mean 'fast-table1'?");
  refused({"fast-table1", "--rows", "Fastmax9"}, "no such row or column. It has: Vanilla, Informer");
  refused({"fast-table1", "--data", "imdb"}, "--data COLUMN=PATH");
  refused({"fast-table1", "--data", "Tex=imdb"}, "has no column Tex. Did you mean 'Text'?");
  refused({"fast-table1", "--seeds", "0"}, "--seeds = 0");
  refused({"fast-table1", "--limit", "-1"}, "--limit = -1");
}
