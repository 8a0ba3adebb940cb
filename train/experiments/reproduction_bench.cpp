// Measures cells that need no training.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/experiments/subprocess.h"
#include "heed/train/loop/progress.h"
#include "heed/train/loop/stop_signals.h"

namespace heed {
namespace {

/// The last line of a subprocess's output that is a JSON object.
Json object_of(const ChildEnd& end, const std::string& what) {
  const size_t at = end.words.rfind("\n{");
  const size_t begin = end.words.starts_with('{') ? 0 : at == std::string::npos ? end.words.size() : at + 1;
  const std::string line = end.words.substr(begin, end.words.find('\n', begin) - begin);
  if (end.code != 0) throw Error(fault_of(end), reason(end));
  if (line.empty()) fail(Fault::internal, what, ": ", reason(end));
  return parse_json(line, what);
}

/// The forward crossover with full attention in crossovers.csv; 0: never.
double crossing(const std::string& csv, const std::string& spec, int64_t width) {
  const std::string begin = text("\n\"", spec, "\",0,", width, ",");
  const size_t at = csv.find(begin);
  if (at == std::string::npos) fail(Fault::data, "crossovers.csv has no line of ", spec, ".");
  return std::stod(csv.substr(at + begin.size()));
}

}  // namespace

Json kept_object(const Path& file, const std::vector<std::string>& arguments) {
  if (!io::exists(file)) {
    const ChildEnd end = run_child(arguments, [] {});
    if (const int signal = StopSignals::received(); signal != 0) throw Stopped{signal};
    io::make_directories(file.parent_path());
    io::write(file, object_of(end, file.filename().string()).dump() + "\n");
  }
  return parse_json(io::read(file), file.string());
}

void time_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.place.quiet;
  double first = NAN;
  for (Work& work : all) {
    const bool is_first = work.row == &table.rows.front();
    if (is_first) first = NAN;
    if (work.row->attention.empty()) continue;
    progress.say("time", text(work.place, ": ", work.cell.name));
    try {
      const PlannedRun plan = plan_run(config_of(work, options, 0), work.row->attention);
      const Path file = options.place.folder / "plans" / (plan.name + ".toml");
      io::make_directories(file.parent_path());
      io::write(file, plan.plan);
      std::vector<std::string> arguments{"bench", "train", file.string(), "--json", "--rounds", "5"};
      arguments.insert(arguments.end(), options.place.machine.begin(), options.place.machine.end());
      const Json row = kept_object(options.place.folder / "speeds" / (plan.name + ".json"), arguments);
      const double speed = 1e3 / row.at("step_ms").real();
      if (is_first) first = speed;
      work.cell.ours = spread_of({speed / first});
      work.cell.paper = work.row->values[work.column_index] / table.rows.front().values[work.column_index];
      work.cell.remark =
          text(picture::fixed(speed, 3), " steps/s here, ", work.row->values[work.column_index], " there");
    } catch (const Error& error) {
      give_up(work, error);
    }
  }
}

void cross_cells(const PublishedTable&, const ReproductionOptions& options, std::vector<Work>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.place.quiet;
  for (Work& work : all) {
    if (work.row->attention.empty()) continue;
    progress.say("time", text(work.place, ": ", work.cell.name));
    const int64_t width = work.column->head_dim;
    const Path folder = options.place.folder / "lengths" / text(work.row->name, "-d", width);
    try {
      if (!io::exists(folder / "crossovers.csv")) {
        // The paper's crossover lies between two measured lengths.
        const int64_t longest = std::max<int64_t>(2048, 2 * width * width);
        std::vector<std::string> arguments{"bench",     "attention", work.row->attention, "--head-dim",
                                           text(width), "--longest", text(longest),       "--seconds",
                                           "60",        "--out",     folder.string()};
        arguments.insert(arguments.end(), options.place.machine.begin(), options.place.machine.end());
        const ChildEnd end = run_child(arguments, [] {});
        if (const int signal = StopSignals::received(); signal != 0) throw Stopped{signal};
        if (end.code != 0) throw Error(fault_of(end), reason(end));
      }
      const double length = crossing(io::read(folder / "crossovers.csv"), work.row->attention, width);
      if (length > 0)
        work.cell.ours = spread_of({length});
      else
        work.cell.remark = "not faster up to the greatest length measured";
    } catch (const Error& error) {
      give_up(work, error);
    }
  }
}

}  // namespace heed
