// Measures speeds and crossovers with `heed bench` in subprocesses.
#include <algorithm>
#include <cmath>
#include <map>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/data/formats/csv.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

constexpr int64_t max_forward_seconds = 60;  // limit of the predicted forward pass at a length
constexpr int64_t min_length = 32;           // shortest length of the paper's crossovers

/// The length from which an attention's forward pass is faster than softmax, as crossovers.csv has it; 0:
/// never.
double crossover_in(const Path& file, const std::string& spec, const PublishedColumn& column) {
  return with_remeasuring_advice(file, [&] {
    const CsvTable crossovers(io::read(file), file.string());
    for (int64_t i = 0; i < crossovers.rows(); ++i) {
      if (crossovers.cell(i, "attention") != spec ||
          crossovers.number(i, "causal") != (column.causal ? 1 : 0) ||
          crossovers.number(i, "head_dim") != static_cast<double>(column.head_dim))
        continue;
      const double length = crossovers.number(i, "forward_from");
      if (length < 0) fail(Fault::data, file, ": the length ", length, " of ", spec, " is below 0.");
      return length;
    }
    fail(Fault::data, file, ": no line is of ", spec, ".");
  });
}

/// Shows which cell is measured, and the time left if the other cells take as long as those measured so far.
class CellProgress {
 public:
  CellProgress(const ReproductionOptions& options, const std::vector<PlannedCell>& all)
      : num_left_(std::ranges::count_if(all, can_run)) {
    progress_.quiet = options.runs.quiet;
    progress_.say("plan", text(num_left_, num_left_ == 1 ? " cell" : " cells", " to measure; page in ",
                               options.results_folder().string()));
  }
  /// Call it before each cell. `is_measured`: an earlier call has measured it.
  void begin(const PlannedCell& planned, bool is_measured) {
    std::string words = text(planned.position, ": ", planned.result.name);
    if (is_measured) {
      words += ": measured already";
    } else {
      if (num_begun_ == 0) began_ = seconds_now();
      if (num_begun_ > 0) {
        const double seconds_each = (seconds_now() - began_) / static_cast<double>(num_begun_);
        words += text(", about ", clock_text(seconds_each * static_cast<double>(num_left_)), " left");
      }
      ++num_begun_;
    }
    progress_.say("time", words);
    --num_left_;
  }

 private:
  Progress progress_;
  double began_ = 0;  // when the first cell was begun
  int64_t num_left_, num_begun_ = 0;
};

}  // namespace

void measure_speeds(const PublishedTable& table, const ReproductionOptions& options,
                    std::vector<PlannedCell>& all) {
  const StopSignals signals;
  CellProgress progress(options, all);
  const PublishedRow& baseline = table.rows.front();
  // Published speeds in steps per second become relative to the first row.
  for (PlannedCell& planned : all) planned.result.paper /= baseline.values[planned.column_index];
  std::map<const PublishedColumn*, double> baseline_speeds;  // speed of the first row, measured here
  measure_each(all, [&](PlannedCell& planned) {
    Config config = config_of(planned, options, 0);
    planned.result.changed = deviations_of(planned, config);
    const PlannedRun plan = plan_run(std::move(config), planned.row->attention_on(*planned.column));
    const Path measured = options.runs.folder / "speeds" / (plan.name + machine_word(options.runs) + ".json");
    progress.begin(planned, io::exists(measured));
    const Path settings = write_plan(plan, options.runs.folder);
    const double step_ms =
        measured_number(measured, {"step_ms"},
                        {"bench", "train", settings.string(), "--json", "--rounds", "5"}, options.runs);
    const double speed = 1e3 / step_ms;
    if (planned.row == &baseline) baseline_speeds[planned.column] = speed;
    planned.result.remark = text(picture::fixed(speed, 3), " steps/s here, ",
                                 planned.row->values[planned.column_index], " in the paper");
    if (const auto found = baseline_speeds.find(planned.column); found != baseline_speeds.end())
      planned.result.ours = spread_of({speed / found->second});
    else
      planned.result.remark += "; no speed of " + baseline.name + " to compare with";
  });
}

Path lengths_folder(const PlannedCell& planned, const ReproductionOptions& options) {
  return options.runs.folder / "lengths" /
         text(planned.row->name, "-d", planned.column->head_dim,
              options.max_length > 0 ? text("-n", options.max_length) : std::string(),
              machine_word(options.runs));
}

int64_t longest_length(const PublishedTable& table, const PublishedRow& row, int64_t head_dim) {
  double published = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].head_dim == head_dim && !std::isnan(row.values[i]))
      published = std::max(published, row.values[i]);
  }
  return std::max<int64_t>(2048, 2 * std::llround(published));
}

void measure_crossovers(const PublishedTable& table, const ReproductionOptions& options,
                        std::vector<PlannedCell>& all) {
  const StopSignals signals;
  CellProgress progress(options, all);
  measure_each(all, [&](PlannedCell& planned) {
    const PublishedColumn& column = *planned.column;
    const Path folder = lengths_folder(planned, options), file = folder / "crossovers.csv";
    progress.begin(planned, io::exists(file));
    const bool is_limited = options.max_length > 0;  // by --longest
    const int64_t longest =
        is_limited ? options.max_length : longest_length(table, *planned.row, column.head_dim);
    if (!io::exists(file))
      run_heed({"bench", "attention", planned.row->attention, "--forward", "--head-dim",
                text(column.head_dim), "--from", text(min_length), "--longest", text(longest), "--seconds",
                text(max_forward_seconds), "--out", folder.string()},
               options.runs, options.runs.budget);
    const double length = crossover_in(file, planned.row->attention, column);
    if (length > 0)
      planned.result.ours = spread_of({length});
    else
      planned.result.remark = text("slower than softmax at the longest length measured, of lengths up to ",
                                   longest, is_limited ? text(" (--longest ", longest, ")") : std::string());
  });
}

}  // namespace heed
