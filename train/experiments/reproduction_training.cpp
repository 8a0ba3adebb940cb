// Estimates, trains and judges the cells of a table.
#include <algorithm>
#include <cmath>
#include <set>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

/// The label of a cell's runs: rows that differ by more than their attention are distinguished by their
/// names.
std::string label_of(const PublishedRow& row, const PublishedColumn& column) {
  return row.settings.empty() && row.from.empty() ? row.attention_on(column) : row.name;
}

/// The run of a cell that begins from the run of another row with the same seed.
PlannedRun plan_from_row(const PublishedTable& table, const PlannedCell& planned, Config config,
                         const ReproductionOptions& options, int64_t seed) {
  const auto base = std::find_if(table.rows.begin(), table.rows.end(),
                                 [&](const PublishedRow& one) { return one.name == planned.row->from; });
  if (base == table.rows.end())
    fail(Fault::internal, "published_results.json: ", table.name, " has no row ", planned.row->from, ".");
  PlannedCell of_base = planned;
  of_base.row = &*base;
  Config base_config = config_of(of_base, options, seed);
  std::vector<std::string> changes;
  for (const ReportSetting& one : different_settings(config, base_config))
    changes.push_back(one.key + "=" + one.value);
  const PlannedRun base_plan = plan_run(std::move(base_config), label_of(*base, *planned.column));
  return plan_run(std::move(config), label_of(*planned.row, *planned.column), &base_plan, std::move(changes));
}

/// Plans a cell's runs; none if it is predicted to take too long and was not named. Returns the predicted
/// seconds of what is not trained yet; NaN where nothing was predicted, because it runs however long it
/// takes.
double plan_cell(const PublishedTable& table, PlannedCell& planned, const ReproductionOptions& options,
                 Progress& progress) {
  for (int64_t seed = 0; seed < options.seeds; ++seed) {
    Config config = config_of(planned, options, seed);
    if (seed == 0) planned.cell.changed = deviations_of(planned, config);
    planned.plans.push_back(planned.row->from.empty()
                                ? plan_run(std::move(config), label_of(*planned.row, *planned.column))
                                : plan_from_row(table, planned, std::move(config), options, seed));
  }
  const Path& folder = options.runs.folder;
  const auto left = std::count_if(planned.plans.begin(), planned.plans.end(),
                                  [&](const PlannedRun& plan) { return !is_trained(plan, folder); });
  if (left == 0) return 0;
  if (planned.asked || !std::isfinite(options.limit)) return NAN;
  const Path plan = folder / "plans" / (planned.plans[0].name + ".toml");
  io::make_directories(plan.parent_path());
  io::write_own(plan, planned.plans[0].plan);
  const Path file = folder / "estimates" / (planned.plans[0].name + machine_word(options) + ".json");
  if (!io::exists(file)) progress.say("estimate", text(planned.position, ": ", planned.cell.name));
  // earlier versions kept only the time of steps
  const double seconds = measured_number(file, {"seconds", "seconds_of_steps"},
                                         {"train", plan.string(), "--dry-run", "--json"}, options) *
                         static_cast<double>(left);
  if (seconds <= options.limit) return seconds;
  planned.cell.remark =
      text("about ", clock_text(seconds), " on this machine; to run it: --rows ", planned.cell.name);
  progress.say("skipped", planned.cell.name + ": " + planned.cell.remark);
  planned.plans.clear();
  return 0;
}

/// Gives up a cell that begins from the weights of another cell that does not run; true: it has.
bool misses_base(PlannedCell& planned, const std::vector<PlannedCell>& all) {
  const auto base = std::find_if(all.begin(), all.end(), [&](const PlannedCell& one) {
    return one.column == planned.column && one.row->name == planned.row->from;
  });
  if (base == all.end() || !base->plans.empty()) return false;
  planned.cell.remark =
      text("not run: it begins from the weights of ", base->cell.name, ": ", base->cell.remark);
  planned.cell.code = base->cell.code;
  return true;
}

/// The first run of the table's first row in a column, where it has scores; null: none.
const ComparedRun* base_run(const PublishedTable& table, const std::vector<PlannedCell>& all,
                            const PlannedCell& planned, const EndedRuns& ended) {
  for (const PlannedCell& one : all) {
    if (one.column != planned.column || one.row != &table.rows.front()) continue;
    for (const PlannedRun& plan : one.plans) {
      if (const ComparedRun* run = finished_run(ended, plan)) return run;
    }
    if (!one.filed.empty()) return &one.filed.front().run;
  }
  return nullptr;
}

/// The comparison page of each column whose runs have all ended.
void compare_columns(const PublishedTable& table, const ReproductionOptions& options,
                     const std::vector<PlannedCell>& all, const EndedRuns& ended) {
  for (const PublishedColumn& column : table.columns) {
    std::vector<ComparedRun> runs;
    bool complete = true;
    for (const PlannedCell& planned : all) {
      if (planned.column != &column) continue;
      for (const PlannedRun& plan : planned.plans) {
        const auto found = ended.find(plan.name);
        complete = complete && found != ended.end();
        if (found != ended.end()) runs.push_back(found->second);
      }
    }
    if (complete && !runs.empty())
      write_comparison(compare_runs(table.name + ", " + column.name, runs),
                       options.runs.folder / column.name);
  }
}

/// Makes the runs of a table, and updates its page as they end.
class TableRuns {
 public:
  TableRuns(const PublishedTable& table, const ReproductionOptions& options, std::vector<PlannedCell>& all,
            Reproduction& result)
      : table_(table), options_(options), all_(all), result_(result) {}

  void make() {
    plan();
    ComparisonOptions runs = options_.runs;
    runs.progressed = [&](const PlannedRun& plan) { write_curves(plan, nullptr); };
    std::set<std::string> was_trained;  // made by an earlier call, whose page has them
    for (const PlannedRun& plan : plans_) {
      if (is_trained(plan, runs.folder)) was_trained.insert(plan.name);
    }
    runs.ended = [&](const PlannedRun& plan, const ComparedRun& run) {
      ended_.insert_or_assign(plan.name, run);
      if (run.failure.empty()) write_curves(plan, &run);
      if (!was_trained.contains(plan.name)) update();
    };
    make_runs(plans_, runs);
  }

  /// Judges all cells by what has ended, and writes the page.
  void update() {
    result_.cells.clear();
    result_.done = 0;
    std::vector<PlannedCell> shown = all_;
    add_filed_runs(table_, options_, ended_, shown);
    for (const PlannedCell& planned : shown) {
      result_.cells.push_back(
          judged(table_, options_, planned, ended_, base_run(table_, shown, planned, ended_)));
    }
    for (const auto& [name, run] : ended_) result_.done += run.failure.empty() ? 1 : 0;
    result_.averages = averages_of(table_, result_.cells);
    write_page({table_, options_, shown, ended_}, result_);
  }

  void compare() { compare_columns(table_, options_, all_, ended_); }

 private:
  void plan() {
    const StopSignals signals;
    Progress progress;
    progress.quiet = options_.runs.quiet;
    std::vector<PlannedCell> on_file = all_;
    add_filed_runs(table_, options_, {}, on_file);  // a damaged curve is reported before anything trains
    std::set<std::string> names;
    double seconds = 0;
    for (PlannedCell& planned : all_) {
      if (!runs(planned) || misses_base(planned, all_)) continue;
      try {
        seconds += plan_cell(table_, planned, options_, progress);
      } catch (const Error& error) {
        mark_failed(planned, error);
      }
    }
    check_cells(progress);
    for (PlannedCell& planned : all_) {
      for (const PlannedRun& plan : planned.plans) {
        if (names.insert(plan.name).second) plans_.push_back(plan);
        report_other_curve(planned, plan, progress);
      }
      result_.runs = static_cast<int64_t>(plans_.size());
    }
    // What is done comes first, so that the page has it while the others run, or where a budget ends them.
    std::stable_partition(plans_.begin(), plans_.end(),
                          [&](const PlannedRun& plan) { return is_trained(plan, options_.runs.folder); });
    progress.say("plan", plan_text(seconds));
  }

  /// Gives up cells whose models cannot be built, before any run trains. Those with an estimate have been
  /// built for it.
  void check_cells(Progress& progress) {
    std::vector<PlannedCell*> first;
    for (PlannedCell& planned : all_) {
      const bool is_new = !planned.plans.empty() &&
                          !io::exists(folder_of(planned.plans[0], options_.runs.folder) / "config.toml");
      if (is_new && (planned.asked || !std::isfinite(options_.limit))) first.push_back(&planned);
    }
    if (first.size() < 2) return;
    progress.say("check", text("the models of ", first.size(), " cells"));
    std::vector<const PlannedRun*> plans;
    for (const PlannedCell* planned : first) plans.push_back(&planned->plans[0]);
    build_models(plans, options_.runs, progress,
                 [&](size_t i, const Error& error) { mark_failed(*first[i], error); });
  }

  /// Says where the curve of a run will not be written, since that of another is on file.
  void report_other_curve(const PlannedCell& planned, const PlannedRun& plan, Progress& progress) const {
    const Path file = curve_file(table_, options_, planned, plan.seed);
    const std::string why = differences_on_file(file, setting_facts(options_, planned));
    if (why.empty()) return;
    progress.say("keep", text(file.string(), " has a run of other settings or data (", why,
                              "). The curve of ", planned.cell.name,
                              " replaces it only where that one is unfinished and this one is not. ",
                              "To have it, name another --results folder or remove the file."));
  }

  /// What this call will do, and how long it will take.
  std::string plan_text(double seconds) const {
    const auto done = std::count_if(plans_.begin(), plans_.end(), [&](const PlannedRun& plan) {
      return is_trained(plan, options_.runs.folder);
    });
    const auto left = static_cast<int64_t>(plans_.size()) - done;
    std::string out = text(left, left == 1 ? " training" : " trainings", " to do");
    if (done > 0) out += text(", ", done, " done already");
    if (left > 0 && std::isfinite(seconds)) out += ", about " + clock_text(seconds);
    if (left > 0 && !std::isfinite(seconds))
      out += "; the time left of each is shown from its first steps on";
    return out + "; page and curves in " + options_.results_folder().string();
  }

  void write_curves(const PlannedRun& plan, const ComparedRun* run) {
    for (const PlannedCell& planned : all_) {
      for (const PlannedRun& own : planned.plans) {
        if (own.name == plan.name) write_curve(table_, options_, planned, own, run);
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
    table_runs.make();
  } catch (const Stopped& stopped) {
    result.stopped = stopped;
  }
  table_runs.update();
  table_runs.compare();
}

}  // namespace heed
