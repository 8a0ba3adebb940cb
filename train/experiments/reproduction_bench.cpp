// Measures cells that need no training.
#include <algorithm>
#include <cmath>
#include <map>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/data/formats/csv.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/experiments/subprocess.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

constexpr int64_t longest_seconds = 60;                 // limit of a crossover's forward pass, as foreseen
constexpr int64_t max_result_bytes = int64_t{1} << 20;  // limit of the object that a subprocess prints
constexpr int64_t shortest_length = 32;  // shortest length tried for crossovers; 32 is the paper's least

/// The forward crossover with full attention in crossovers.csv; 0: never.
double crossing(const Path& file, const std::string& spec, const PublishedColumn& column) {
  return with_remeasuring(file, [&] {
    const CsvTable found = CsvTable(io::read(file), file.string());
    for (int64_t i = 0; i < found.rows(); ++i) {
      if (found.cell(i, "attention") != spec || found.number(i, "causal") != (column.causal ? 1 : 0) ||
          found.number(i, "head_dim") != static_cast<double>(column.head_dim))
        continue;
      const double length = found.number(i, "forward_from");
      if (length < 0) fail(Fault::data, file, ": the length ", length, " of ", spec, " is below 0.");
      return length;
    }
    fail(Fault::data, file, ": no line is of ", spec, ".");
  });
}

/// Says which cell is measured, and how long the cells that are left will take if they take as long as those
/// before.
class CellProgress {
 public:
  CellProgress(const ReproductionOptions& options, const std::vector<PlannedCell>& all)
      : began_(seconds_now()), left_(std::count_if(all.begin(), all.end(), runs)) {
    progress_.quiet = options.runs.quiet;
    progress_.say("plan", text(left_, left_ == 1 ? " cell" : " cells", " to measure; page in ",
                               options.results_folder().string()));
  }
  /// Before a cell; `is_measured`: an earlier call has measured it.
  void begin(const PlannedCell& planned, bool is_measured) {
    std::string words = text(planned.position, ": ", planned.cell.name);
    if (is_measured)
      words += ": measured already";
    else if (measured_++ > 0)
      words += text(", about ",
                    clock_text(spent() / static_cast<double>(measured_ - 1) * static_cast<double>(left_)),
                    " left");
    else
      began_ = seconds_now();
    progress_.say("time", words);
    --left_;
  }

 private:
  double spent() const { return seconds_now() - began_; }

  Progress progress_;
  double began_;
  int64_t left_, measured_ = 0;
};

}  // namespace

std::string machine_word(const ReproductionOptions& options) {
  std::string words;
  for (const std::string& word : options.runs.machine) words += word + " ";
  const std::string name = file_word(words);
  return name.empty() ? "" : "-" + name.substr(0, name.find_last_not_of('-') + 1);
}

ChildEnd run_heed(std::vector<std::string> arguments, const ReproductionOptions& options,
                  const TimeBudget& budget) {
  stop_if_asked(budget);
  arguments.insert(arguments.end(), options.runs.machine.begin(), options.runs.machine.end());
  const ChildEnd end = run_child(
      arguments, [] {}, [&] { return budget.spent(); });
  if (end.asked && end.code != 0) throw Stopped{StopSignals::received()};
  if (end.code != 0) throw Error(fault_of(end), reason(end));
  return end;
}

double measured_number(const Path& file, const std::vector<std::string>& keys,
                       const std::vector<std::string>& arguments, const ReproductionOptions& options) {
  if (!io::exists(file)) {
    const ChildEnd end = run_heed(arguments, options, options.runs.budget);
    const size_t begin = end.words.starts_with('{') ? 0 : end.words.rfind("\n{") + 1;  // the last object
    const std::string line = end.words.substr(begin, end.words.find('\n', begin) - begin);
    const std::string name = file.filename().string();
    if (!line.starts_with('{')) fail(Fault::internal, name, ": ", reason(end));
    io::make_directories(file.parent_path());
    io::write_own(file, parse_json(line, name).dump() + "\n");
  }
  return with_remeasuring(file, [&] {
    const Json json = parse_json(io::read(file, max_result_bytes), file.string());
    for (const std::string& key : keys) {
      const Json* value = json.is_object() ? json.find(key) : nullptr;
      if (value == nullptr) continue;
      if (!value->is_number() || !(value->real() > 0))
        fail(Fault::data, file, ": '", key, "' is ", shown(value->dump(), 40),
             ". It must be a number above 0.");
      return value->real();
    }
    fail(Fault::data, file, ": byte 0: no object with '", keys.front(), "'.");
  });
}

void time_cells(const PublishedTable& table, const ReproductionOptions& options,
                std::vector<PlannedCell>& all) {
  const StopSignals signals;
  CellProgress progress(options, all);
  // The paper's speeds become relative to the first row.
  for (PlannedCell& planned : all) planned.cell.paper /= table.rows.front().values[planned.column_index];
  std::map<const PublishedColumn*, double> base_speeds;  // our speeds of the first row
  measure_each(all, [&](PlannedCell& planned) {
    Config config = config_of(planned, options, 0);
    planned.cell.changed = deviations_of(planned, config);
    const PlannedRun plan = plan_run(std::move(config), planned.row->attention_on(*planned.column));
    const Path file = options.runs.folder / "plans" / (plan.name + ".toml");
    const Path result = options.runs.folder / "speeds" / (plan.name + machine_word(options) + ".json");
    progress.begin(planned, io::exists(result));
    io::make_directories(file.parent_path());
    io::write_own(file, plan.plan);
    const double speed =
        1e3 / measured_number(result, {"step_ms"},
                              {"bench", "train", file.string(), "--json", "--rounds", "5"}, options);
    if (planned.row == &table.rows.front()) base_speeds[planned.column] = speed;
    planned.cell.remark = text(picture::fixed(speed, 3), " steps/s here, ",
                               planned.row->values[planned.column_index], " in the paper");
    if (const auto base = base_speeds.find(planned.column); base != base_speeds.end())
      planned.cell.ours = spread_of({speed / base->second});
    else
      planned.cell.remark += "; no speed of " + table.rows.front().name + " to compare with";
  });
}

Path lengths_folder(const PlannedCell& planned, const ReproductionOptions& options) {
  return options.runs.folder / "lengths" /
         text(planned.row->name, "-d", planned.column->head_dim,
              options.max_length > 0 ? text("-n", options.max_length) : std::string(), machine_word(options));
}

int64_t longest_length(const PublishedTable& table, const PublishedRow& row, int64_t head_dim) {
  double published = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].head_dim == head_dim && !std::isnan(row.values[i]))
      published = std::max(published, row.values[i]);
  }
  return std::max<int64_t>(2048, 2 * std::llround(published));
}

void cross_cells(const PublishedTable& table, const ReproductionOptions& options,
                 std::vector<PlannedCell>& all) {
  const StopSignals signals;
  CellProgress progress(options, all);
  measure_each(all, [&](PlannedCell& planned) {
    const PublishedColumn& column = *planned.column;
    const Path folder = lengths_folder(planned, options), file = folder / "crossovers.csv";
    progress.begin(planned, io::exists(file));
    const int64_t longest =
        options.max_length > 0 ? options.max_length : longest_length(table, *planned.row, column.head_dim);
    if (!io::exists(file))
      run_heed({"bench", "attention", planned.row->attention, "--forward", "--head-dim",
                text(column.head_dim), "--from", text(shortest_length), "--longest", text(longest),
                "--seconds", text(longest_seconds), "--out", folder.string()},
               options, options.runs.budget);
    const double length = crossing(file, planned.row->attention, column);
    if (length > 0)
      planned.cell.ours = spread_of({length});
    else
      planned.cell.remark =
          text("slower than softmax at the longest length measured, of lengths up to ", longest,
               options.max_length > 0 ? text(" (--longest ", longest, ")") : std::string());
  });
}

}  // namespace heed
