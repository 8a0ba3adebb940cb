// Tables whose cells have the best of a grid of settings: the file, the choice, curves on file, and the
// command.
#include <algorithm>
#include <cmath>
#include <set>

#include "heed/tests/train/shell.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/session/setting_options.h"

using namespace heed;

namespace {

/// A table of one cell in the form of published_results.json.
std::string table_with(const std::string& members, const std::string& row = R"("attention": "softmax")") {
  return text(R"({"t": {"about": "a", "source": "s", "measure": "accuracy", "tolerance": 1, )", members,
              R"("columns": {"C": {"preset": "mqar"}}, "rows": {"r": {)", row, "}}}}");
}

/// The first cell of zoology-figure2 with a training for each of its four rates and each seed.
struct GridCell {
  explicit GridCell(int64_t seeds = 1) {
    options.runs.folder = scratch / "all";
    for (const GridPoint& point : table.points) {
      for (int64_t seed = 1; seed <= seeds; ++seed)
        work.trials.push_back({.label = "softmax",
                               .seed = seed,
                               .name = text("run-", point_text(point), "-", seed),
                               .plan = "",
                               .point = point});
    }
  }

  /// Ends training number `i` with these accuracies, and writes its metrics.
  void end(size_t i, double valid, double test) {
    const PlannedRun& plan = work.trials.at(i);
    const Path run = folder_of(plan, options.runs.folder);
    io::make_directories(run);
    io::write(run / "metrics.jsonl", text("{\"step\": 2, \"loss\": 1, \"seconds\": 1}\n"
                                          "{\"step\": 2, \"valid_loss\": 1, \"valid_accuracy\": ",
                                          valid, "}\n"));
    ended[plan.name] = {.label = plan.label,
                        .folder = run.string(),
                        .failure = "",
                        .seed = plan.seed,
                        .step = 2,
                        .scores = {{"accuracy", test}},
                        .metrics = {{"valid_accuracy", {2}, {valid}}, {"valid_loss", {2}, {1}}},
                        .point = plan.point};
  }
  void fail_at(size_t i) {
    const PlannedRun& plan = work.trials.at(i);
    ended[plan.name] = {.label = plan.label, .folder = "", .failure = "not finite", .code = 4};
    ended[plan.name].point = plan.point;
  }

  CellResult judged() {
    take_best_point(work, ended);
    return judged_cell(table, options, work, ended, nullptr);
  }

  /// Writes the curves of the best point.
  void write() const {
    for (const PlannedRun& best : work.plans)
      write_curve(table, options, work, best, finished_run(ended, best));
  }

  /// This cell as another call finds it on file.
  PlannedCell filed() const {
    std::vector<PlannedCell> all{PlannedCell::of(table, table.rows[0], 0)};
    add_filed_runs(table, options, {}, all);
    return all.at(0);
  }

  const Scratch scratch;
  const PublishedTable& table = published_table("zoology-figure2");
  ReproductionOptions options;
  PlannedCell work = PlannedCell::of(table, table.rows[0], 0);
  EndedRuns ended;
};

}  // namespace

TEST_CASE("grid of a table: it is parsed with the file, and a bad one is named with its table") {
  const PublishedTable table =
      parse_published(table_with(R"("grid": "lr=1e-3,1e-2,weight_decay=0,0.1", )")).at(0);
  REQUIRE(table.points.size() == 4);
  CHECK(point_text(table.points[1]) == "lr=1e-3, weight_decay=0.1");
  CHECK(std::isnan(table.rows[0].values.at(0)));  // a row may have no published values
  CHECK(parse_published(table_with("")).at(0).points == std::vector<GridPoint>(1));
  const auto refused = [](const std::string& json, const std::string& words) {
    CAPTURE(json);
    CHECK_THROWS_WITH(parse_published(json), containing("published_results.json: t: ") && containing(words));
    CHECK(fault_of([&] { parse_published(json); }) == Fault::internal);
  };
  refused(table_with(R"("grid": "lr=1e-4:x:4", )"), "grid 'lr=1e-4:x:4': '1e-4:x:4' is not FROM:TO:COUNT");
  refused(table_with(R"("grid": "lr=1,1", )"), "'1' twice");
  refused(table_with(R"("grid": "lr=1,2", )", R"("attention": "softmax", "from": "r")"), "begins from");
  std::string measured = table_with(R"("grid": "lr=1,2", )");
  measured.replace(measured.find("accuracy"), 8, "steps_per_second");
  refused(measured, "a measure that trains");
}

TEST_CASE("grid of a table: every point of every table can be set, and is another training") {
  size_t num_tables = 0;
  for (const PublishedTable& table : published()) {
    if (table.grid.empty()) continue;
    ++num_tables;
    CAPTURE(table.name);
    ReproductionOptions options;
    options.adjust = [](Config& config, const GridPoint& point) {
      apply_settings(config, with_point({}, point));
    };
    for (size_t column = 0; column < table.columns.size(); ++column) {
      for (const PublishedRow& row : table.rows) {
        CAPTURE(row.name, table.columns[column].name);
        const PlannedCell planned = PlannedCell::of(table, row, column);
        std::set<std::string> names;
        for (const GridPoint& point : table.points)
          names.insert(plan_run(config_of(planned, options, 0, point), row.name).name);
        CHECK(names.size() == table.points.size());
        Config config = config_of(planned, options, 0);
        CHECK(deviations_of(planned, config).empty());
        for (const auto& [key, value] : row.settings) {
          if (key == "model.d_model") CHECK(text(config.model.d_model) == value);
        }
      }
    }
  }
  CHECK(num_tables == 3);
  const PublishedTable& zoology = published_table("zoology-figure2");
  const PlannedCell wide = PlannedCell::of(zoology, zoology.rows[0], 3);
  CHECK(wide.column->name == "T64-w512");
  CHECK(recipe_of(wide).model.d_model == 512);                                       // the column sets it
  CHECK(recipe_of(PlannedCell::of(zoology, zoology.rows[2], 3)).model.layers == 4);  // the row sets it
}

TEST_CASE("grid of a table: a cell has the best point by validation, and no value before all have ended") {
  GridCell cell;
  cell.end(0, 0.5, 0.9);
  cell.end(1, 0.75, 0.25);
  const Path begun = folder_of(cell.work.trials[2], cell.options.runs.folder);
  io::make_directories(begun);
  io::write(begun / "config.toml", "");
  const CellResult unfinished = cell.judged();
  CHECK(unfinished.ours.count == 0);
  CHECK(unfinished.has_begun);
  CHECK(unfinished.remark == "2 of 4 settings have ended; lr=0.002154, seed 1 started");
  CHECK(unfinished.setting.empty());
  cell.end(2, 0.625, 1);
  CHECK_THAT(cell.judged().remark, containing("3 of 4 settings have ended"));
  cell.fail_at(3);
  const CellResult finished = cell.judged();
  CHECK(finished.ours.mean == 25);
  CHECK(finished.setting ==
        "lr=0.0004642 is the best of 4 settings by validation; lr=0.01 failed: not finite");
  CHECK(finished.code == 0);
  CHECK_THAT(note_text(finished), containing("lr=0.0004642 is the best of 4"));
  Reproduction all;
  all.cells = {finished};
  CHECK_THAT(reproduction_csv(all), containing(",\"lr=0.0004642 is the best of 4 settings"));
  CHECK_THAT(unwrapped(reproduction_text(cell.table, all), ""),
             containing("best of 4 settings by validation, those of the grid lr=1e-4:1e-2:4."));
}

TEST_CASE("grid of a table: a best point at the edge of the grid is flagged") {
  GridCell cell;
  for (size_t i = 0; i < 4; ++i) cell.end(i, i == 3 ? 1 : 0.5, 1);
  CHECK(
      cell.judged().setting ==
      "lr=0.01 is the best of 4 settings by validation, and lr=0.01 is at the edge of the grid: a wider one "
      "may have a better");
  const std::vector<GridPoint> two_decays = published_table("mad").points;
  CHECK(settings_at_edge(two_decays[0], two_decays) == GridPoint{{"lr", "1e-4"}});  // two values have no edge
  CHECK(settings_at_edge(two_decays[2], two_decays).empty());
}

TEST_CASE("grid of a table: the mean over seeds decides, and all seeds of the best point count") {
  GridCell cell(2);
  for (size_t i = 0; i < 8; ++i) cell.end(i, i == 2 ? 1 : i == 3 ? 0 : i == 4 || i == 5 ? 0.75 : 0.5, 0.5);
  CHECK(cell.judged().ours.count == 2);
  REQUIRE(cell.work.plans.size() == 2);
  for (const PlannedRun& best : cell.work.plans) CHECK(best.point == cell.table.points[2]);
}

TEST_CASE("grid of a table: a cell whose runs all failed, or have no validation, says so") {
  GridCell failed;
  for (size_t i = 0; i < 4; ++i) failed.fail_at(i);
  const CellResult result = failed.judged();
  CHECK(result.ours.count == 0);
  CHECK(result.remark == "not finite");
  CHECK(result.code == 4);
  GridCell blind;
  for (size_t i = 0; i < 4; ++i) {
    blind.end(i, 1, 1);
    blind.ended[blind.work.trials[i].name].metrics.clear();
  }
  const CellResult unknown = blind.judged();
  CHECK_THAT(unknown.remark, containing("no run has a validation score"));
  CHECK(unknown.code == static_cast<int>(Fault::data));
}

TEST_CASE("grid of a table: the curve of the best point is on file, and is read back with its point") {
  GridCell cell;
  for (size_t i = 0; i < 3; ++i) cell.end(i, 0.5, 0.5);
  cell.judged();
  cell.write();
  const Path file = curve_file(cell.table, cell.options, cell.work, 1);
  CHECK_FALSE(io::exists(file));  // the best point is not known yet
  cell.end(3, 1, 0.75);
  cell.judged();
  cell.write();
  CHECK(file.filename() == "zoology-figure2-Attention-T64-w64-s1.csv");
  const std::string curve = io::read(file);
  CHECK_THAT(curve, containing("# grid: lr=1e-4:1e-2:4\n# best point: lr=0.01\n"));
  const PlannedCell filed = cell.filed();
  REQUIRE(filed.finished_on_file.size() == 1);
  CHECK(filed.finished_on_file[0].run.point == GridPoint{{"lr", "0.01"}});
  const CellResult shown = judged_cell(cell.table, cell.options, filed, {}, nullptr);
  CHECK(shown.ours.mean == 75);
  CHECK_THAT(shown.setting, containing("lr=0.01 is the best of 4") && containing("at the edge"));
  // While this call has not chosen, the run on file counts; a run at another point replaces it.
  GridCell again;
  again.options.results = cell.options.results_folder();
  for (size_t i = 0; i < 3; ++i) again.end(i, i == 1 ? 1 : 0.5, 0.25);
  std::vector<PlannedCell> all{again.work};
  add_filed_runs(again.table, again.options, again.ended, all);
  CHECK(judged_cell(again.table, again.options, all[0], again.ended, nullptr).ours.mean == 75);
  again.end(3, 0.5, 0.25);
  CHECK(again.judged().ours.mean == 25);
  again.write();
  CHECK_THAT(io::read(file), containing("# best point: lr=0.0004642\n"));
}

TEST_CASE("grid of a table: a curve of another grid is left out, and a damaged point is refused") {
  GridCell cell;
  for (size_t i = 0; i < 4; ++i) cell.end(i, 0.5, 0.5);
  cell.judged();
  cell.write();
  const Path file = curve_file(cell.table, cell.options, cell.work, 1);
  const std::string curve = io::read(file);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = curve;
    other.replace(other.find(from), from.size(), to);
    io::write(file, other);
  };
  changed("# grid: lr=1e-4:1e-2:4", "# grid: lr=1e-3,1e-2");
  std::vector<PlannedCell> all{cell.work};
  add_filed_runs(cell.table, cell.options, {}, all);
  CHECK(all[0].finished_on_file.empty());
  CHECK_THAT(all[0].result.ignored_curves,
             containing("is left out (grid: on file lr=1e-3,1e-2, here lr=1e-4:1e-2:4)"));
  cell.write();
  CHECK_THAT(io::read(file), containing("# grid: lr=1e-3,1e-2\n"));  // a finished run of another grid stays
  changed("# best point: lr=0.0001", "# best point: 0.0001");
  CHECK_THROWS_WITH(cell.filed(), containing("'0.0001' in 'best point': it must be SETTING=VALUE"));
}

TEST_CASE("states of a table: the score stands over the numbers that models keep") {
  const PublishedTable& table = published_table("based-figure2");
  const Scratch scratch;
  ReproductionOptions options;
  options.results = scratch / "results";
  std::vector<PlannedCell> all;
  for (const char* name : {"based-8-w64", "based-16-w64", "gla-w64"}) {
    const auto row = std::ranges::find(table.rows, name, &PublishedRow::name);
    REQUIRE(row != table.rows.end());
    all.push_back(PlannedCell::of(table, *row, 0));
    ComparedRun run{.label = name, .folder = "", .failure = ""};
    run.scores = {{"accuracy", 0.5}};
    all.back().finished_on_file = {{run, {}}};
  }
  const std::string line = draw_states({table, options, all, {}}, table.columns[0]);
  CHECK_THAT(line, containing("](based-figure2-T256-K64-states.svg)"));
  const std::string svg = io::read(options.results / "based-figure2-T256-K64-states.svg");
  CHECK_THAT(svg, containing("accuracy over what a model keeps: based, gla") &&
                      containing("numbers after 256 tokens"));
  // A dot for the single model of gla, a line over two sizes for based.
  CHECK(svg.find("<circle") != svg.npos);
  CHECK(svg.find("<circle") == svg.rfind("<circle"));
  all.clear();
  CHECK(draw_states({table, options, all, {}}, table.columns[0]).empty());
}

TEST_CASE("reproduce: a cell with a grid trains each point, and files the best one") {
  const Shell shell;
  const auto words = [](const std::string& more) {
    return command_words(
        "reproduce zoology-figure2 --rows Attention/T64-w64 --steps 4 --d-model 8 --set data.vocabulary=64 "
        "--num-examples 64 --validation 16 --test-size 16 --batch-size 8 --threads 1 " +
        more);
  };
  const Result first = shell.run(words("--results kept --seeds 2"));
  CAPTURE(first.err, first.out);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.err, containing("8 trainings to do") && containing("lr=0.0004642, seed 2"));
  const Path folder = shell.scratch / "runs" / "reproduce-zoology-figure2";
  CHECK(io::list(folder / "runs").size() == 8);
  CHECK_THAT(unwrapped(first.out), containing("is the best of 4 settings by validation") &&
                                       containing("train.max_steps 4 (recipe: 0)") &&
                                       !containing("learning_rate"));
  const Path kept = shell.scratch / "kept";
  for (const char* seed : {"1", "2"})
    CHECK_THAT(io::read(kept / text("zoology-figure2-Attention-T64-w64-s", seed, ".csv")),
               containing("# grid: lr=1e-4:1e-2:4\n# best point: lr="));
  CHECK_FALSE(io::exists(kept / "zoology-figure2-Attention-T64-w64-s3.csv"));
  CHECK_THAT(io::read(kept / "zoology-figure2.md"), containing("those of the grid lr=1e-4:1e-2:4") &&
                                                        containing("zoology-figure2-T64-w64-loss-steps.svg"));
  CHECK(io::exists(folder / "T64-w64" / "sweep-lr.svg"));
  const auto row_of = [&](const std::string& name) {
    const std::string page = io::read(kept / "zoology-figure2.md");
    const size_t begin = page.find("| " + name);
    return begin == page.npos ? "" : page.substr(begin, page.find('\n', begin) - begin);
  };
  const std::string attention = row_of("Attention/T64-w64");
  CHECK_THAT(attention, containing("| 99.20 |") && containing("any answer"));
  const Result again = shell.run(words("--results kept --seeds 2"));
  CHECK_THAT(again.err, containing("0 trainings to do, 8 done already"));
  CHECK(again.out == first.out);
  // Elsewhere, from the curves alone.
  const Result other =
      shell.run(command_words("reproduce zoology-figure2 --rows linear/T64-w64 --limit 0 --steps 1 --d-model "
                              "8 --set data.vocabulary=64 "
                              "--num-examples 64 --validation 16 --test-size 16 --batch-size 8 --threads 1 "
                              "--quiet --results kept --out o"));
  CAPTURE(other.err, other.out);
  REQUIRE(other.code == 0);
  CHECK(row_of("Attention/T64-w64") == attention);
  check_refused(shell, words("--lr 1e-3"), 2, {"the grid tries values of lr, and --lr sets it, too"});
}
