// Plans, estimates and trains the runs of a table.
#include <algorithm>
#include <cmath>
#include <set>

#include "heed/core/io/files.h"
#include "heed/train/experiments/comparison_sweep.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

/// The label of a row's runs: its attention, or its name if the row changes more than the attention.
std::string label_of(const PublishedRow& row, const PublishedColumn& column) {
  return row.settings.empty() && row.from.empty() ? row.attention_on(column) : row.name;
}

/// Plans the run of a cell with one seed. If its row begins from the weights of another row, the run begins
/// from that row's run with the same seed.
PlannedRun plan_seed(const PublishedTable& table, const PlannedCell& planned, Config config,
                     const ReproductionOptions& options, int64_t seed) {
  const std::string label = label_of(*planned.row, *planned.column);
  if (planned.row->from.empty()) return plan_run(std::move(config), label);
  const auto base_row = std::ranges::find(table.rows, planned.row->from, &PublishedRow::name);
  if (base_row == table.rows.end())
    fail(Fault::internal, "published_results.json: ", table.name, " has no row ", planned.row->from, ".");
  PlannedCell base_cell = planned;
  base_cell.row = &*base_row;
  Config base_config = config_of(base_cell, options, seed);
  std::vector<std::string> changes;
  for (const ReportSetting& setting : different_settings(config, base_config))
    changes.push_back(setting.key + "=" + setting.value);
  const PlannedRun base_plan = plan_run(std::move(base_config), label_of(*base_row, *planned.column));
  return plan_run(std::move(config), label, &base_plan, std::move(changes));
}

/// Plans a cell's runs; none if it is predicted to take longer than the limit and was not requested. Returns
/// the predicted seconds of the trainings that are left; NaN where nothing is predicted, since the cell runs
/// however long it takes.
double plan_cell(const PublishedTable& table, PlannedCell& planned, const ReproductionOptions& options,
                 Progress& progress) {
  Config config = config_of(planned, options, 0);
  planned.result.changed = deviations_of(planned, config);
  std::vector<PlannedRun>& plans = table.grid.empty() ? planned.plans : planned.trials;
  for (const GridPoint& point : table.points) {
    for (int64_t seed = 0; seed < options.seeds; ++seed) {
      plans.push_back(plan_seed(table, planned, config_of(planned, options, seed, point), options, seed));
      plans.back().point = point;
    }
  }
  const Path& folder = options.runs.folder;
  const auto num_left =
      std::ranges::count_if(plans, [&](const PlannedRun& plan) { return !is_trained(plan, folder); });
  if (num_left == 0) return 0;
  if (!options.page_only && (planned.is_requested || !std::isfinite(options.limit))) return NAN;
  const PlannedRun& first = plans[0];
  const Path estimate = folder / "estimates" / (first.name + machine_word(options.runs) + ".json");
  const bool has_some =
      std::ranges::any_of(plans, [&](const PlannedRun& plan) { return has_begun(plan, folder); });
  if (options.page_only && has_some) return NAN;  // the page shows how far they have come
  if (options.page_only && !io::exists(estimate)) {
    plans.clear();
    return 0;
  }
  if (!io::exists(estimate)) progress.say("estimate", text(planned.position, ": ", planned.result.name));
  // earlier versions kept only the time of steps
  const double seconds =
      measured_number(estimate, {"seconds", "seconds_of_steps"},
                      {"train", write_plan(first, folder).string(), "--dry-run", "--json"}, options.runs) *
      static_cast<double>(num_left);
  planned.result.estimate = seconds;
  if (seconds <= options.limit && !options.page_only) return seconds;
  planned.result.remark =
      text("about ", clock_text(seconds), " on this machine; to run it: --rows ", planned.result.name);
  progress.say("skipped", planned.result.name + ": " + planned.result.remark);
  plans.clear();
  return 0;
}

/// Gives up a cell that begins from the weights of another cell if that one does not run. Returns whether it
/// has given up.
bool give_up_without_base(PlannedCell& planned, const std::vector<PlannedCell>& all) {
  const auto base = std::ranges::find_if(all, [&](const PlannedCell& other) {
    return other.column == planned.column && other.row->name == planned.row->from;
  });
  if (base == all.end() || !base->trainings().empty()) return false;
  planned.result.remark =
      text("not run: it begins from the weights of ", base->result.name, ": ", base->result.remark);
  planned.result.code = base->result.code;
  return true;
}

/// The first run with scores of the table's first row in a cell's column; null: none.
const ComparedRun* baseline_run_of(const PublishedTable& table, const std::vector<PlannedCell>& all,
                                   const PlannedCell& planned, const EndedRuns& ended) {
  const auto baseline = std::ranges::find_if(all, [&](const PlannedCell& other) {
    return other.column == planned.column && other.row == &table.rows.front();
  });
  if (baseline == all.end()) return nullptr;
  for (const PlannedRun& plan : baseline->plans) {
    if (const ComparedRun* run = finished_run(ended, plan)) return run;
  }
  return baseline->finished_on_file.empty() ? nullptr : &baseline->finished_on_file.front().run;
}

/// Writes the comparison page of each column whose planned runs have all ended.
void compare_columns(const PublishedTable& table, const ReproductionOptions& options,
                     const std::vector<PlannedCell>& all, const EndedRuns& ended) {
  for (const PublishedColumn& column : table.columns) {
    std::vector<ComparedRun> runs;
    bool is_complete = true;
    for (const PlannedCell& planned : all) {
      if (planned.column != &column) continue;
      for (const PlannedRun& plan : planned.trainings()) {
        const auto run = ended.find(plan.name);
        is_complete = is_complete && run != ended.end();
        if (is_complete) runs.push_back(run->second);
      }
    }
    if (!is_complete || runs.empty()) continue;
    const std::string selection = table.grid.empty() ? "" : choose_points(runs);
    Comparison comparison = compare_runs(table.name + ", " + column.name, std::move(runs));
    comparison.selection = selection;
    write_comparison(comparison, options.runs.folder / column.name);
  }
}

/// Trains the runs of a table, and updates its results and page as they end.
class TableRuns {
 public:
  TableRuns(const PublishedTable& table, const ReproductionOptions& options, std::vector<PlannedCell>& all,
            Reproduction& result)
      : table_(table), options_(options), all_(all), result_(result) {}

  /// Plans all runs, and trains those without scores.
  void train() {
    plan();
    ComparisonOptions runs = options_.runs;
    runs.progressed = [&](const PlannedRun& plan) { write_curves(plan, nullptr); };
    std::set<std::string> trained_before;  // the page of an earlier call has them
    for (const PlannedRun& plan : plans_) {
      if (has_scores(plan)) trained_before.insert(plan.name);
    }
    runs.ended = [&](const PlannedRun& plan, const ComparedRun& run) {
      ended_.insert_or_assign(plan.name, run);
      write_curves(plan, &run);
      if (!trained_before.contains(plan.name)) update();
    };
    std::vector<PlannedRun> wanted = plans_;
    if (options_.page_only) std::erase_if(wanted, [&](const PlannedRun& plan) { return !has_scores(plan); });
    make_runs(wanted, runs);
  }

  /// Judges all cells by the runs that have ended, and writes the page.
  void update() {
    std::vector<PlannedCell> shown = all_;
    add_filed_runs(table_, options_, ended_, shown);
    result_.cells.clear();
    for (const PlannedCell& planned : shown)
      result_.cells.push_back(
          judged_cell(table_, options_, planned, ended_, baseline_run_of(table_, shown, planned, ended_)));
    result_.done =
        std::ranges::count_if(ended_, [](const auto& ended) { return ended.second.failure.empty(); });
    result_.averages = averages_of(table_, result_.cells);
    write_page({table_, options_, shown, ended_}, result_);
  }

  void compare() { compare_columns(table_, options_, all_, ended_); }

 private:
  bool has_scores(const PlannedRun& plan) const { return is_trained(plan, options_.runs.folder); }

  /// Fills plans_: trained runs first, so that the page shows them while the others train.
  void plan() {
    const StopSignals signals;
    Progress progress;
    progress.quiet = options_.runs.quiet;
    std::vector<PlannedCell> with_files = all_;
    add_filed_runs(table_, options_, {}, with_files);  // reports a damaged curve before anything trains
    double seconds = 0;
    for (PlannedCell& planned : all_) {
      if (!can_run(planned) || (!options_.page_only && give_up_without_base(planned, all_))) continue;
      try {
        seconds += plan_cell(table_, planned, options_, progress);
      } catch (const Error& error) {
        mark_failed(planned, error);
      }
    }
    if (!options_.page_only) check_cells(progress);
    std::set<std::string> names;
    for (const PlannedCell& planned : all_) {
      for (const PlannedRun& plan : planned.trainings()) {
        if (names.insert(plan.name).second) plans_.push_back(plan);
        const bool is_first_point = plan.point == planned.trainings().front().point;  // all share one file
        if (is_first_point) report_other_curve(planned, plan, progress);
      }
    }
    result_.runs = static_cast<int64_t>(plans_.size());
    std::ranges::stable_partition(plans_, [&](const PlannedRun& plan) { return has_scores(plan); });
    if (!options_.page_only) progress.say("plan", plan_text(seconds));
  }

  /// Gives up cells whose models cannot be built, before any run trains. Cells with an estimate are left out:
  /// their models were built for it.
  void check_cells(Progress& progress) {
    std::vector<PlannedCell*> unchecked;
    std::vector<const PlannedRun*> plans;
    for (PlannedCell& planned : all_) {
      const bool is_estimated = !planned.is_requested && std::isfinite(options_.limit);
      const std::vector<PlannedRun>& trainings = planned.trainings();
      if (trainings.empty() || is_estimated || has_begun(trainings[0], options_.runs.folder)) continue;
      unchecked.push_back(&planned);
      plans.push_back(trainings.data());
    }
    if (unchecked.size() < 2) return;
    progress.say("check", text("the models of ", unchecked.size(), " cells"));
    build_models(plans, options_.runs, progress,
                 [&](size_t i, const Error& error) { mark_failed(*unchecked[i], error); });
  }

  /// Reports that the curve of a run will not be written, because the file holds that of another run.
  void report_other_curve(const PlannedCell& planned, const PlannedRun& plan, Progress& progress) const {
    const Path file = curve_file(table_, options_, planned, plan.seed);
    const std::string why = differences_on_file(file, setting_facts(table_, options_, planned));
    if (why.empty()) return;
    progress.say("keep", text(file.string(), " has a run of other settings or data (", why,
                              "). The curve of ", planned.result.name,
                              " replaces it only where that one is unfinished and this one is not. ",
                              "To have it, name another --results folder or remove the file."));
  }

  /// The number of trainings left and done, and the predicted seconds of those left (NaN: unknown).
  std::string plan_text(double seconds) const {
    const auto num_done =
        std::ranges::count_if(plans_, [&](const PlannedRun& plan) { return has_scores(plan); });
    const auto num_left = static_cast<int64_t>(plans_.size()) - num_done;
    std::string words = text(num_left, num_left == 1 ? " training" : " trainings", " to do");
    if (num_done > 0) words += text(", ", num_done, " done already");
    if (num_left > 0 && std::isfinite(seconds)) words += ", about " + clock_text(seconds);
    if (num_left > 0 && !std::isfinite(seconds))
      words += "; the time left of each is shown from its first steps on";
    return words + "; page and curves in " + options_.results_folder().string();
  }

  /// Writes the curve of a run for each cell that it counts in; with a grid, those of the best point once all
  /// runs of the cell have ended. `run` is null while it trains.
  void write_curves(const PlannedRun& plan, const ComparedRun* run) {
    for (PlannedCell& planned : all_) {
      if (std::ranges::count(planned.trainings(), plan.name, &PlannedRun::name) == 0) continue;
      if (planned.trials.empty()) {
        if (run == nullptr || run->failure.empty()) write_curve(table_, options_, planned, plan, run);
        continue;
      }
      take_best_point(planned, ended_);
      for (const PlannedRun& best : planned.plans) {
        if (const ComparedRun* finished = finished_run(ended_, best))
          write_curve(table_, options_, planned, best, finished);
      }
    }
  }

  const PublishedTable& table_;
  const ReproductionOptions& options_;
  std::vector<PlannedCell>& all_;
  Reproduction& result_;
  std::vector<PlannedRun> plans_;
  EndedRuns ended_;
};

}  // namespace

void train_cells(const PublishedTable& table, const ReproductionOptions& options,
                 std::vector<PlannedCell>& all, Reproduction& result) {
  TableRuns table_runs(table, options, all, result);
  try {
    table_runs.train();
  } catch (const Stopped& stopped) {
    result.stopped = stopped;
  }
  table_runs.update();
  table_runs.compare();
}

}  // namespace heed
